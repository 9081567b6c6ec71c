package scale

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/cases"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/breaker"
)

func TestChartsHaveEveryPoint(t *testing.T) {
	plan := measure.Plan{Rounds: 1, Batch: 10 * time.Microsecond}
	for _, chart := range []Chart{Goroutines(cases.All()[1], plan), Sharing(plan)} {
		if len(chart.Curves) < 2 {
			t.Errorf("%s: %d curves", chart.Key, len(chart.Curves))
		}
		for _, curve := range chart.Curves {
			if len(curve.Nanos) != len(chart.Sizes) {
				t.Errorf("%s, %s: %d points, want %d", chart.Key, curve.Name, len(curve.Nanos), len(chart.Sizes))
			}
		}
	}
}

func TestAWindowDoesNotGrow(t *testing.T) {
	for _, trip := range []breaker.Option{
		breaker.FailureRate(0.9, breaker.Last(100)),
		breaker.FailureRate(0.9, breaker.Within(time.Minute)),
	} {
		m := ourBreaker("breaker", trip)
		if m.Used > m.Idle+16 { // what the runtime does beside us
			t.Errorf("%.0f bytes idle, %.0f after calls", m.Idle, m.Used)
		}
	}
}
