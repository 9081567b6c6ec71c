// Command bench measures what a call costs under Holdfast and under its peers, side by
// side, and writes docs/benchmarks.md with its plots.
//
//	go run .              a few minutes
//	go run . -quick       under one; so does BENCH=quick in the environment
//	go run . -case retry  the cases whose key matches, on the terminal only
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/cases"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/report"
	"github.com/holdfast-go/holdfast/bench/internal/scale"
)

// Plans: two to three minutes on a quiet machine, and half a minute.
var (
	fullPlan  = measure.Plan{Rounds: 40, Batch: 3 * time.Millisecond}
	quickPlan = measure.Plan{Rounds: 9, Batch: time.Millisecond}
)

// plots is the folder of the plots, beside the page.
const plots = "benchmarks"

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(2)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", os.Getenv("BENCH") == "quick", "few and short rounds")
	out := flags.String("out", "", "folder of the page (default: docs of this repository)")
	only := flags.String("case", "", "measure only cases whose key matches this `regexp`, and write no page")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-case: %w", err)
	}
	b := bench{plan: fullPlan, stdout: stdout, stderr: stderr}
	if *quick {
		b.plan = quickPlan
	}
	r := report.Report{
		Machine: report.ThisMachine(), Peers: report.Peers(), Began: time.Now(), Plan: b.plan, Quick: *quick,
	}
	if err := b.cases(&r, pattern); err != nil {
		return err
	}
	if *only != "" {
		return report.VerdictText(stdout, r.Verdicts())
	}
	if *out == "" {
		if *out, err = docs(); err != nil {
			return err
		}
	}
	if err := b.scaling(&r); err != nil {
		return err
	}
	if err := report.VerdictText(stdout, r.Verdicts()); err != nil {
		return err
	}
	return write(r, *out)
}

type bench struct {
	plan           measure.Plan
	stdout, stderr io.Writer
}

func (b bench) cases(r *report.Report, pattern *regexp.Regexp) error {
	for _, c := range cases.All() {
		if !pattern.MatchString(c.Key) {
			continue
		}
		fmt.Fprintf(b.stderr, "%s …\n", c.Key)
		found := report.CaseResult{Case: c, Found: compare(c, b.plan)}
		r.Cases = append(r.Cases, found)
		if err := report.CaseText(b.stdout, found); err != nil {
			return err
		}
	}
	return nil
}

// compare measures the implementations of a case against one another.
func compare(c cases.Case, plan measure.Plan) []measure.Measurement {
	setup := cases.NewSetup()
	defer setup.Close()
	ctx, cancel := c.Context()
	defer cancel()
	work := c.NewWork(ctx)
	var subjects []measure.Subject
	for _, implementation := range c.Implementations {
		loop := implementation.New(setup)
		subjects = append(subjects, measure.Subject{
			Name: implementation.Name,
			Loop: func(n int) { _, _ = loop(n, work) },
		})
	}
	return measure.Run(subjects, plan)
}

func (b bench) scaling(r *report.Report) error {
	for _, c := range cases.All() {
		switch c.Key {
		case "breaker-consecutive", "breaker-time", "bulkhead", "ratelimit", "pipeline":
			fmt.Fprintf(b.stderr, "%s, by goroutines …\n", c.Key)
			r.Charts = append(r.Charts, scale.Goroutines(c, b.plan))
		}
	}
	fmt.Fprintln(b.stderr, "shared breakers …")
	r.Charts = append(r.Charts, scale.Sharing(b.plan))
	for _, c := range r.Charts {
		if err := report.ChartText(b.stdout, c); err != nil {
			return err
		}
	}
	fmt.Fprintln(b.stderr, "memory …")
	r.Memory = scale.Memories()
	r.Breakers, r.Many = scale.ManyBreakers()
	return report.MemoryText(b.stdout, *r)
}

// write writes the page and its plots into the folder out.
func write(r report.Report, out string) error {
	folder := filepath.Join(out, plots)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, c := range r.Cases {
		if err := report.WriteCase(filepath.Join(folder, c.Key+".svg"), c); err != nil {
			return err
		}
	}
	for _, c := range r.Charts {
		if err := report.WriteChart(filepath.Join(folder, c.Key+".svg"), c); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(out, "benchmarks.md"))
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(f)
	return errors.Join(r.Markdown(buffered, plots), buffered.Flush(), f.Close())
}

// docs finds the repository's docs folder from wherever in it the command runs.
func docs() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module github.com/holdfast-go/holdfast\n") {
			return filepath.Join(dir, "docs"), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside the repository: say -out")
		}
		dir = parent
	}
}
