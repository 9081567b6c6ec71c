package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/scenario"
)

// At a higher speed, a busy machine's hiccups outlast what is measured.
const slowest, fastest = 0.1, 100

func newRun() *cobra.Command {
	var (
		speed        float64
		asJSON, list bool
	)
	cmd := &cobra.Command{
		Use:   "run [SCENARIO…]",
		Short: "Run scenarios, all by default, and check what they show",
		Long: `Run scenarios, all by default, each on services of its own on free ports of
127.0.0.1. Prints a table per scenario: the policies through which Order called
Payment, what was measured, what must be, and what others report to compare.
Exits 1 if a scenario did not show what it must.

Times are shown as at full speed, whatever --speed is, except those marked real.`,
		Example: `  holdfast lab run --speed 5
  holdfast lab run breaker-slow trap
  holdfast lab run --json --speed 5 | jq .checks`,
		ValidArgs: scenario.Names(),
		Args:      cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, names []string) error {
			scenarios, err := choose(names)
			if err != nil {
				return err
			}
			if !(speed >= slowest && speed <= fastest) {
				return fmt.Errorf("--speed %v: must be between %v and %v", speed, slowest, fastest)
			}
			out := cmd.OutOrStdout()
			if list {
				return reporting(report.Text{Out: out}.List(scenarios))
			}
			if asJSON {
				_, err = runAll(cmd.Context(), scenarios, scenario.Pace(speed), quietly, report.JSON{Out: out}.Result)
				return err
			}
			return tell(cmd.Context(), scenarios, scenario.Pace(speed), out)
		},
	}
	cmd.Flags().Float64Var(&speed, "speed", 1, "divide every duration by `N`; above 10, a busy machine gets in the way")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the results as JSON, one object per line")
	cmd.Flags().BoolVar(&list, "list", false, "name the scenarios, how long each takes at full speed and what it shows; run none")
	cmd.MarkFlagsMutuallyExclusive("json", "list")
	return cmd
}

// choose returns the scenarios of these names, or all.
func choose(names []string) ([]scenario.Scenario, error) {
	if len(names) == 0 {
		return scenario.All(), nil
	}
	var chosen []scenario.Scenario
	for _, name := range names {
		s, ok := scenario.Find(name)
		if !ok {
			return nil, fmt.Errorf("unknown scenario %q: must be one of %s", name, strings.Join(scenario.Names(), ", "))
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

// tell runs scenarios and tells people what they show.
func tell(ctx context.Context, scenarios []scenario.Scenario, pace scenario.Pace, out io.Writer) error {
	start := time.Now()
	text := report.Text{Out: out, Colour: colourful(out)}
	if err := text.Begin(scenarios, pace); err != nil {
		return reporting(err)
	}
	progress := quietly
	if text.Colour {
		progress = func(s scenario.Scenario) *report.Progress {
			return report.ShowProgress(out, s.Name, s.Orders())
		}
	}
	results, err := runAll(ctx, scenarios, pace, progress, text.Result)
	if results == nil {
		return err
	}
	if err := text.End(results, time.Since(start)); err != nil {
		return reporting(err)
	}
	return err
}

func quietly(scenario.Scenario) *report.Progress { return &report.Progress{} }

// runAll runs scenarios one after another. The results are those of all scenarios,
// or nil if it was interrupted.
func runAll(
	ctx context.Context,
	scenarios []scenario.Scenario,
	pace scenario.Pace,
	progress func(scenario.Scenario) *report.Progress,
	print func(scenario.Result) error,
) ([]scenario.Result, error) {
	var results []scenario.Result
	verdict := error(nil)
	for _, s := range scenarios {
		result, err := steadily(pace, func(pace scenario.Pace) (scenario.Result, error) {
			p := progress(s)
			defer p.Stop()
			return scenario.Run(ctx, s, pace, p.Answered)
		})
		if err != nil {
			return nil, err
		}
		if err := print(result); err != nil {
			return nil, reporting(err)
		}
		if !result.OK {
			verdict = errFailed
		}
		results = append(results, result)
	}
	return results, verdict
}

// steadily runs a scenario, and runs it again where the machine was so busy that it
// may have caused what was seen: more slowly, so that the same hiccups weigh less.
func steadily(
	pace scenario.Pace, run func(scenario.Pace) (scenario.Result, error),
) (scenario.Result, error) {
	const patience = 3
	for runs := 1; ; runs++ {
		result, err := run(pace)
		result.Runs = runs
		if err != nil || runs == patience || !result.Disturbed() {
			return result, err
		}
		pace /= 1.5
	}
}

// reporting marks an error of writing the report.
func reporting(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}

// colourful tells whether out is a terminal whose user has nothing against colour.
func colourful(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
