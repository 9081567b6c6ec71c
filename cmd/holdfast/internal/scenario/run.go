package scenario

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast/policy"
)

// A Result is what a scenario showed.
type Result struct {
	Scenario  string    `json:"scenario"`
	Shows     string    `json:"shows"`
	Note      string    `json:"note,omitempty"`
	OK        bool      `json:"ok"`
	Error     string    `json:"error,omitempty"` // why it could not be run to its end
	Speed     float64   `json:"speed"`
	TookMS    int64     `json:"tookMs"`    // really
	Runs      int       `json:"runs"`      // until this result
	StalledMS int64     `json:"stalledMs"` // how late the machine woke a sleeper, at worst
	Parts     []Summary `json:"parts"`
	Checks    []Check   `json:"checks"`
}

// A Summary is what was counted in a part. Times are unscaled, except those within
// which orders were refused, or answered at once.
type Summary struct {
	Part             string         `json:"part,omitempty"`
	Pipeline         string         `json:"pipeline"` // see Part.Pipeline
	Orders           int            `json:"orders"`
	Answers          map[string]int `json:"answers"`
	FastestMS        float64        `json:"fastestMs"`
	SlowestMS        float64        `json:"slowestMs"`
	AnsweredAtOnce   int            `json:"answeredAtOnce"` // in less than 50 ms, really
	Refused          int            `json:"refused"`
	SlowestRefusalMS float64        `json:"slowestRefusalRealMs"`
	Received         int            `json:"received"`
	Charges          int            `json:"charges"`
	Asked            int            `json:"asked"`
	MaxWaiting       int            `json:"maxWaiting"`
	MaxInFlight      int            `json:"maxInFlight"`
}

// Run runs a scenario and judges it. Answered is called after each order, from
// several goroutines. The error is ctx's, if that ended the run; whatever else goes
// wrong is in the result.
func Run(ctx context.Context, s Scenario, pace Pace, answered func()) (Result, error) {
	result := Result{Scenario: s.Name, Shows: s.Shows, Note: s.Note, Speed: float64(pace), Runs: 1}
	start, watch := time.Now(), watchStalls()
	parts, err := runParts(ctx, s.Parts, pace, answered)
	result.StalledMS = watch.stop().Milliseconds()
	result.TookMS = time.Since(start).Milliseconds()
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err != nil {
		result.Error = err.Error()
		return result, nil
	}
	for i, m := range parts {
		result.Parts = append(result.Parts, summary(s.Parts[i], m))
	}
	result.Checks = s.Judge(parts)
	result.OK = allOK(result.Checks)
	return result, nil
}

// Disturbed tells whether the machine, rather than a policy, may be to blame for what
// the scenario did not show.
func (r Result) Disturbed() bool { return !r.OK && r.StalledMS >= stall.Milliseconds() }

// Orders is the number of orders that a scenario counts up to.
func (s Scenario) Orders() int {
	n := 0
	for _, part := range s.Parts {
		n += part.Orders
	}
	return n
}

func runParts(ctx context.Context, parts []Part, pace Pace, answered func()) ([]Measured, error) {
	measured := make([]Measured, len(parts))
	all, ctx := errgroup.WithContext(ctx)
	for i, part := range parts {
		all.Go(func() (err error) {
			if err := policy.Sleep(ctx, policy.SystemClock, pace.Of(part.After)); err != nil {
				return err
			}
			measured[i], err = runPart(ctx, pace, part, answered)
			return err
		})
	}
	return measured, all.Wait()
}

func runPart(ctx context.Context, pace Pace, part Part, answered func()) (Measured, error) {
	b, err := open(pace, part, answered)
	if err != nil {
		return Measured{}, fmt.Errorf("cannot start the services: %w", err)
	}
	defer b.close()
	return b.run(ctx)
}

func summary(p Part, m Measured) Summary {
	refused := m.Refused()
	return Summary{
		Part:             m.Part,
		Pipeline:         p.Pipeline(),
		Orders:           len(m.Orders),
		Answers:          m.Statuses(),
		FastestMS:        milliseconds(m.Fastest()),
		SlowestMS:        milliseconds(m.Slowest()),
		AnsweredAtOnce:   quick(m.Orders),
		Refused:          len(refused),
		SlowestRefusalMS: milliseconds(slowest(refused)),
		Received:         m.Received(),
		Charges:          m.Charges(),
		Asked:            m.last().Asked,
		MaxWaiting:       m.Order.MaxWaiting,
		MaxInFlight:      m.MaxInFlight,
	}
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}

func allOK(checks []Check) bool {
	for _, c := range checks {
		if !c.OK {
			return false
		}
	}
	return len(checks) > 0
}
