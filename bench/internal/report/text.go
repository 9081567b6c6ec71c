package report

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/scale"
)

// columns are those of every case's table.
var columns = []string{"", "serial ns", "1 proc ns", "2 procs ns", "spread", "B", "allocs", "× ours, serial", "× ours, 2 procs"}

func (c CaseResult) rows() [][]string {
	rows := make([][]string, len(c.Found))
	for i, m := range c.Found {
		rows[i] = []string{
			c.Implementations[i].Name,
			nanos(m.Time[measure.Serial].Median()),
			nanos(m.Time[measure.One].Median()),
			nanos(m.Time[measure.Two].Median()),
			percent(m.Time[measure.Serial].Spread()),
			fmt.Sprintf("%.0f", m.Bytes),
			fmt.Sprintf("%.0f", math.Round(m.Allocs)),
			ratio(m.Time[measure.Serial].Over(c.ours().Time[measure.Serial])),
			ratio(m.Time[measure.Two].Over(c.ours().Time[measure.Two])),
		}
	}
	return rows
}

// CaseText writes a case's table for a terminal.
func CaseText(w io.Writer, c CaseResult) error {
	return table(w, c.Title, columns, c.rows())
}

// ChartText writes a chart's numbers for a terminal.
func ChartText(w io.Writer, c scale.Chart) error {
	return table(w, c.Title+": ns per call against "+c.Axis, chartColumns(c), chartRows(c))
}

// VerdictText writes the goals for a terminal.
func VerdictText(w io.Writer, verdicts []Verdict) error {
	return table(w, fmt.Sprintf("Goals: %d of %d met", Met(verdicts), len(verdicts)), verdictColumns, verdictRows(verdicts))
}

func chartColumns(c scale.Chart) []string {
	names := []string{""}
	for _, size := range c.Sizes {
		names = append(names, fmt.Sprint(size))
	}
	return names
}

func chartRows(c scale.Chart) [][]string {
	rows := make([][]string, len(c.Curves))
	for i, curve := range c.Curves {
		rows[i] = []string{curve.Name}
		for _, ns := range curve.Nanos {
			rows[i] = append(rows[i], nanos(ns))
		}
	}
	return rows
}

var verdictColumns = []string{"goal", "mode", "against", "found", "at most", ""}

func verdictRows(verdicts []Verdict) [][]string {
	rows := make([][]string, len(verdicts))
	for i, v := range verdicts {
		met := "met"
		if !v.Met {
			met = "MISSED"
		}
		rows[i] = []string{v.Goal, v.Mode, v.Against, v.Found, v.Limit, met}
	}
	return rows
}

func table(w io.Writer, title string, head []string, rows [][]string) error {
	fmt.Fprintf(w, "\n%s\n", title)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range append([][]string{head}, rows...) {
		for _, cell := range row {
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// MemoryText writes what things weigh for a terminal.
func MemoryText(w io.Writer, r Report) error {
	if err := table(w, "Bytes retained", []string{"", "idle", "used"}, memoryRows(r.Memory)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d breakers with a time window: %.1f MB\n", r.Many, r.Breakers/1e6)
	return err
}
