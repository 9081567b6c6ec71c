package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/scale"
)

// Markdown writes the page. Plots are linked from the folder given, which holds a file per
// case and chart.
func (r Report) Markdown(w io.Writer, plots string) error {
	p := &page{w: w}
	r.writeHead(p)
	r.writeGoals(p)
	p.line("\n## The cost of a call\n")
	p.line("Blue bars are ours, grey ones peers, orange ones floors and what is shown for scale; dark is serial, pale is two processors.")
	for _, c := range r.Cases {
		r.writeCase(p, c, plots)
	}
	r.writeScaling(p, plots)
	r.writeMemory(p)
	r.writeAbsent(p)
	return p.err
}

func (r Report) writeHead(p *page) {
	p.line("# Benchmarks\n")
	p.line("What a call costs under each policy and under pipelines, beside the libraries that a user would pick instead, and what it costs to keep them. " +
		"This page is written by `make bench`; edits would be lost.\n")
	p.line("## How to read it\n")
	p.line("- The work is a function that returns a pointer, without I/O: all that is measured is the policies' own cost. A call over a network takes ten thousand times as long.")
	p.line("- Every implementation of a case runs in the same process, in short batches, in turn, over many rounds, in an order that changes. A number is the **median** of the rounds.")
	p.line("- Trust the **ratios** (× ours: how many times what ours costs; the median of the rounds' own ratios), not the nanoseconds: on a shared machine those drift by a third from one run to the next, but what disturbs a round disturbs everybody in it.")
	p.line("- *spread* is half the distance between the quartiles of the serial rounds: differences smaller than that mean nothing.")
	p.line("- *serial* is one goroutine; *1 proc* and *2 procs* are what `RunParallel` does at one and two processors, in wall time per call. What scales perfectly costs half at two.")
	p.line("- *B* and *allocs* are bytes and allocations per call. The batches are too short to meet many garbage collections, so an allocation costs a program more than its nanoseconds here.")
	p.line("- Each implementation is checked by a test to do what its case says: the breaker refuses, the retry makes three attempts, the limiter limits. What a library cannot do is not imitated: see [what is not here](#what-is-not-here).")
	if r.Quick {
		p.line("\n**This was a quick run, with few and short rounds. `make bench` without `BENCH=quick` gives numbers to quote.**")
	}
	p.line("\n## The run\n")
	p.table([]string{"", ""}, [][]string{
		{"date", r.Began.UTC().Format(time.DateOnly)},
		{"Go", r.Machine.Go + ", " + r.Machine.System},
		{"processor", fmt.Sprintf("%s, %d in use", r.Machine.Processor, r.Machine.Processors)},
		{"rounds", fmt.Sprintf("%d, of %v per implementation and mode", r.Plan.Rounds, r.Plan.Batch)},
	})
	var rows [][]string
	for _, m := range r.Peers {
		rows = append(rows, []string{m.Name, "`" + m.Path + "`", m.Version})
	}
	p.line("")
	p.table([]string{"peer", "module", "version"}, rows)
}

func (r Report) writeGoals(p *page) {
	verdicts := r.Verdicts()
	if len(verdicts) == 0 {
		return
	}
	p.line("\n## Goals\n")
	p.line("What the design promises, as ratios of our time to another's in this run, on the success path unless said: %d of %d met.\n", Met(verdicts), len(verdicts))
	rows := verdictRows(verdicts)
	for i, v := range verdicts {
		if !v.Met {
			rows[i][5] = "**missed**"
		}
	}
	p.table(verdictColumns, rows)
	writeSpent(p, verdicts)
}

// writeSpent tells on what the time of missed goals goes, once for all that say the same.
func writeSpent(p *page, verdicts []Verdict) {
	var reasons []string
	missed := map[string][]string{} // goals by reason
	for _, v := range verdicts {
		if v.Met || v.Spent == "" || slices.Contains(missed[v.Spent], v.Goal) {
			continue
		}
		if missed[v.Spent] == nil {
			reasons = append(reasons, v.Spent)
		}
		missed[v.Spent] = append(missed[v.Spent], v.Goal)
	}
	if len(reasons) > 0 {
		p.line("\nOn what the time goes where a goal is missed, by CPU profile:\n")
	}
	for _, reason := range reasons {
		p.line("- %s: %s.", strings.Join(missed[reason], "; "), reason)
	}
}

func (r Report) writeCase(p *page, c CaseResult, plots string) {
	p.line("\n### %s\n\n%s\n", c.Title, c.About)
	p.table(columns, c.rows())
	var notes []string
	for _, i := range c.Implementations {
		if i.Note != "" {
			notes = append(notes, fmt.Sprintf("%s: %s", i.Name, i.Note))
		}
	}
	if len(notes) > 0 {
		p.line("\n%s.", strings.Join(notes, ". "))
	}
	p.line("\n![%s](%s/%s.svg)", c.Title, plots, c.Key)
}

func (r Report) writeScaling(p *page, plots string) {
	if len(r.Charts) == 0 {
		return
	}
	p.line("\n## Scaling\n")
	p.line("Nanoseconds per call, by two processors. The time is wall time of all calls divided by their number.")
	for _, c := range r.Charts {
		p.line("\n### %s, against %s\n", c.Title, c.Axis)
		if c.About != "" {
			p.line("%s\n", c.About)
		}
		p.table(chartColumns(c), chartRows(c))
		p.line("\n![%s against %s](%s/%s.svg)", c.Title, c.Axis, plots, c.Key)
	}
}

func (r Report) writeMemory(p *page) {
	if len(r.Memory) == 0 {
		return
	}
	p.line("\n## Memory\n")
	p.line("Bytes that one keeps on the heap, just made and after two thousand calls of which every tenth failed. A window's memory is fixed: it does not grow with traffic.\n")
	p.table([]string{"", "idle", "used"}, memoryRows(r.Memory))
	p.line("\n%d breakers with a time window keep %.1f MB.", r.Many, r.Breakers/1e6)
}

func memoryRows(memory []scale.Memory) [][]string {
	rows := make([][]string, len(memory))
	for i, m := range memory {
		rows[i] = []string{m.Name, size(m.Idle), ""}
		if m.Used != 0 {
			rows[i][2] = size(m.Used)
		}
	}
	return rows
}

func (r Report) writeAbsent(p *page) {
	p.line("\n## What is not here\n")
	var rows [][]string
	for _, a := range absent {
		rows = append(rows, []string{a[0], a[1]})
	}
	p.table([]string{"what", "why"}, rows)
}

// page writes lines and remembers the first error.
type page struct {
	w   io.Writer
	err error
}

func (p *page) line(format string, args ...any) {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	if p.err == nil {
		_, p.err = io.WriteString(p.w, format+"\n")
	}
}

// table writes a table of which all columns but the first hold numbers, unless a cell of
// the second has letters: then it is one of words.
func (p *page) table(head []string, rows [][]string) {
	p.line("| " + strings.Join(head, " | ") + " |")
	var rule strings.Builder
	rule.WriteString("| --- |")
	for i := range head[1:] {
		if numeric(rows, i+1) {
			rule.WriteString(" --: |")
		} else {
			rule.WriteString(" --- |")
		}
	}
	p.line(rule.String())
	for _, row := range rows {
		p.line("| " + strings.Join(row, " | ") + " |")
	}
}

func numeric(rows [][]string, column int) bool {
	for _, row := range rows {
		if strings.Trim(row[column], "0123456789.± %–k") != "" {
			return false
		}
	}
	return true
}
