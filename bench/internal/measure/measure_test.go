package measure

import (
	"math"
	"sync/atomic"
	"testing"
	"time"
)

func TestSeries(t *testing.T) {
	s := Series{40, 10, 30, 20, 1000}
	if got := s.Median(); got != 30 {
		t.Errorf("Median() = %v, want 30", got)
	}
	if got, want := s.Spread(), (40.0-20.0)/2/30; got != want {
		t.Errorf("Spread() = %v, want %v", got, want)
	}
	if got := s.Over(Series{20, 5, 15, 10, 1}); got != 2 {
		t.Errorf("Over() = %v, want 2: one disturbed round changes nothing", got)
	}
	if got := (Series{}).Median(); !math.IsNaN(got) {
		t.Errorf("Median() of nothing = %v, want NaN", got)
	}
}

func TestParallelDoesEveryOperationOnce(t *testing.T) {
	for _, n := range []int{1, 2, 63, 1000, 12345} {
		var done atomic.Int64
		Parallel(func(n int) { done.Add(int64(n)) }, 3, n)
		if got := done.Load(); got != int64(n) {
			t.Errorf("%d of %d operations were done", got, n)
		}
	}
}

func TestRunMeasuresEverySubjectInEveryRound(t *testing.T) {
	var sink atomic.Pointer[[64]byte]
	found := Run([]Subject{
		{Name: "nothing", Loop: func(int) {}},
		{Name: "allocates", Loop: func(n int) {
			for range n {
				sink.Store(new([64]byte))
			}
		}},
	}, Plan{Rounds: 3, Batch: 10 * time.Microsecond})
	for i, m := range found {
		for _, mode := range Modes {
			if got := len(m.Time[mode]); got != 3 {
				t.Errorf("subject %d, %v: %d rounds, want 3", i, mode, got)
			}
		}
	}
	if got := found[1]; math.Round(got.Allocs) != 1 || math.Round(got.Bytes) != 64 {
		t.Errorf("allocated %v bytes in %v allocations, want 64 in 1", got.Bytes, got.Allocs)
	}
}

func TestRetained(t *testing.T) {
	got := Retained(1000, func() *[1024]byte { return new([1024]byte) }, nil)
	if got < 1000 || got > 1100 {
		t.Errorf("a value of 1024 bytes retains %v", got)
	}
}
