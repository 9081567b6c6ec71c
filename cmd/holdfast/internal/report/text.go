// Package report prints what the lab's scenarios showed.
package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/scenario"
)

// Text prints tables for people.
type Text struct {
	Out    io.Writer
	Colour bool
}

// Result prints the table of one scenario.
func (t Text) Result(r scenario.Result) error {
	if _, err := fmt.Fprintf(t.Out, "\n%s  %s\n", t.paint(r.Scenario, text.Bold), r.Shows); err != nil {
		return err
	}
	if r.Error != "" {
		_, err := fmt.Fprintf(t.Out, "  %s  %s\n", t.paint("FAIL", text.FgRed, text.Bold), r.Error)
		return err
	}
	_, err := fmt.Fprintf(t.Out, "%s%s\n%s%s", through(r.Parts), t.checks(r.Checks), indented(r.Note), note(r))
	return err
}

// through tells through which policies Order called Payment: in one line, where all
// parts have the same.
func through(parts []scenario.Summary) string {
	if len(parts) == 0 {
		return ""
	}
	const what = "  Order calls Payment through:"
	same, width := true, 0
	for _, p := range parts {
		same = same && p.Pipeline == parts[0].Pipeline
		width = max(width, len(p.Part))
	}
	if same {
		return fmt.Sprintf("%s %s\n", what, pipeline(parts[0]))
	}
	var lines strings.Builder
	lines.WriteString(what + "\n")
	for _, p := range parts {
		fmt.Fprintf(&lines, "    %-*s  %s\n", width+1, p.Part+":", pipeline(p))
	}
	return lines.String()
}

// pipeline says so where there are no policies.
func pipeline(p scenario.Summary) string {
	if p.Pipeline == holdfast.Compose().String() {
		return p.Pipeline + " (no policies)"
	}
	return p.Pipeline
}

func indented(note string) string {
	var lines strings.Builder
	for line := range strings.Lines(note) {
		fmt.Fprintf(&lines, "  %s\n", strings.TrimSuffix(line, "\n"))
	}
	return lines.String()
}

// End sums up.
func (t Text) End(results []scenario.Result, took time.Duration) error {
	var failed []string
	for _, r := range results {
		if !r.OK {
			failed = append(failed, r.Scenario)
		}
	}
	verdict := t.paint("all showed what they must", text.FgGreen)
	if len(failed) > 0 {
		verdict = t.paint(fmt.Sprintf("%d did not show what it must: %v", len(failed), failed), text.FgRed, text.Bold)
	}
	_, err := fmt.Fprintf(t.Out, "%s\n%s in %s: %s\n", inShort(results), count(len(results), "scenario"), seconds(took), verdict)
	return err
}

// List prints the names of the scenarios, how long each takes at full speed, and what
// it shows.
func (t Text) List(scenarios []scenario.Scenario) error {
	w := newTable()
	for _, s := range scenarios {
		w.AppendRow(table.Row{s.Name, fmt.Sprintf("%.0f s", s.Takes.Seconds()), s.Shows})
	}
	w.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}})
	_, err := fmt.Fprintln(t.Out, w.Render())
	return err
}

// note tells what the machine's part in the result was.
func note(r scenario.Result) string {
	switch {
	case r.Disturbed():
		return fmt.Sprintf("  This machine is too busy: it stalled for %d ms (real), in the last of %s at speed %.2g.\n",
			r.StalledMS, count(r.Runs, "run"), r.Speed)
	case r.Runs > 1:
		return fmt.Sprintf("  Run %d times, at last at speed %.2g: before, the machine was too busy.\n", r.Runs, r.Speed)
	default:
		return ""
	}
}

func (t Text) checks(checks []scenario.Check) string {
	w := newTable()
	w.AppendHeader(table.Row{"", "", "measured", "must be", "others report"})
	w.SuppressEmptyColumns()
	for _, c := range checks {
		w.AppendRow(table.Row{t.verdict(c), c.Name, c.Measured, c.Expected, c.Documents})
	}
	return w.Render()
}

func (t Text) verdict(c scenario.Check) string {
	switch {
	case !c.OK:
		return t.paint("FAIL", text.FgRed, text.Bold)
	case c.Expected == "":
		return ""
	default:
		return t.paint("ok", text.FgGreen)
	}
}

func (t Text) paint(s string, colours ...text.Color) string {
	if !t.Colour {
		return s
	}
	return text.Colors(colours).EscapeSeq() + s + text.Reset.EscapeSeq()
}

// newTable has no lines but the one under its header.
func newTable() table.Writer {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true}
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	return w
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", max(1, d.Seconds())) }
