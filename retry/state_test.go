package retry

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// lowest and highest are random sources at their ends.
func lowest(uint64) uint64    { return 0 }
func highest(n uint64) uint64 { return n - 1 }

// BEHAVIOUR 34: the range of every kind of jitter.
func TestJitterRange(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name      string
		strategy  strategy
		jitter    JitterKind
		low, high []time.Duration // of each wait, where those before were as high as can be
	}{
		{
			"none", exponential, None,
			[]time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1000 * ms, 1000 * ms},
			[]time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1000 * ms, 1000 * ms},
		},
		{
			"full", exponential, Full,
			[]time.Duration{0, 0, 0, 0, 0, 0},
			[]time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1000 * ms, 1000 * ms},
		},
		{
			"equal", exponential, Equal,
			[]time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 500 * ms, 500 * ms},
			[]time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1000 * ms, 1000 * ms},
		},
		{
			"decorrelated", exponential, Decorrelated,
			[]time.Duration{100 * ms, 100 * ms, 100 * ms, 100 * ms},
			[]time.Duration{300 * ms, 900 * ms, 1000 * ms, 1000 * ms},
		},
		{"constant, full", constant, Full, []time.Duration{0, 0}, []time.Duration{1000 * ms, 1000 * ms}},
		{"constant, equal", constant, Equal, []time.Duration{500 * ms, 500 * ms}, []time.Duration{1000 * ms, 1000 * ms}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := 100 * ms
			if tt.strategy == constant {
				base = 1000 * ms
			}
			for i := range tt.low {
				d := newDelays(tt.strategy, tt.jitter, base, 1000*ms)
				for range i {
					d.next(highest)
				}
				fork := d
				low, _ := d.next(lowest)
				high, _ := fork.next(highest)
				if low != tt.low[i] || high != tt.high[i] {
					t.Errorf("wait %d in [%v, %v], want [%v, %v]", i+1, low, high, tt.low[i], tt.high[i])
				}
			}
		})
	}
}

// The cap is jittered too, evenly.
func TestJitterIsUniform(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)).Uint64N
	d := newDelays(exponential, Full, 10, 10)
	const rounds = 110_000
	var counts [11]int
	for range rounds {
		wait, _ := d.next(random)
		counts[wait]++
	}
	for wait, n := range counts {
		if n < 9_500 || n > 10_500 {
			t.Errorf("a wait of %d came %d times of %d, want about 10000", wait, n, rounds)
		}
	}
}

// BEHAVIOUR 35: no attempt, however late, waits a negative time, or none by overflow.
func TestLateAttempts(t *testing.T) {
	for limit, attempts := range map[time.Duration]int{1: 100, time.Second: 1_000_000, math.MaxInt64: 100} {
		d := newDelays(exponential, None, 1, limit)
		for attempt := 1; attempt <= attempts; attempt++ {
			wait, ok := d.next(rand.Uint64N)
			if !ok || wait < 1 || wait > limit || attempt > 64 && wait != limit {
				t.Fatalf("attempt %d waits %v, want the cap %v in the end", attempt, wait, limit)
			}
		}
	}
}

func FuzzDelays(f *testing.F) {
	f.Add(int64(1), int64(math.MaxInt64), uint8(Decorrelated-Full), uint64(10), uint16(100))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), uint8(Equal-Full), uint64(2), uint16(3))
	f.Add(int64(math.MaxInt64/3), int64(math.MaxInt64), uint8(0), uint64(6), uint16(70))
	f.Add(int64(math.MaxInt64/2), int64(math.MaxInt64), uint8(Decorrelated-Full), uint64(8), uint16(3))
	f.Add(int64(0), int64(0), uint8(None-Full), uint64(5), uint16(2))
	f.Fuzz(func(t *testing.T, base, limit int64, jitter uint8, seed uint64, attempts uint16) {
		s := settings{attempts: 1, name: "x", maxElapsed: 1, base: time.Duration(base), max: time.Duration(limit)}
		s.jitter, s.strategy = Full+JitterKind(jitter%4), exponential
		if seed%2 == 1 {
			s.strategy, s.max = constant, s.base
		}
		if s.check() != nil {
			t.Skip("New refuses these settings")
		}
		random := rand.New(rand.NewPCG(seed, 0)).Uint64N
		d, previous := newDelays(s.strategy, s.jitter, s.base, s.max), s.base
		for attempt := range attempts {
			wait, ok := d.next(random)
			low, high := time.Duration(0), s.max
			switch s.jitter {
			case Full:
			case Equal:
				low = s.base / 2
			default:
				low = s.base
			}
			if s.jitter == Decorrelated && previous <= math.MaxInt64/3 {
				high = min(high, 3*previous)
			}
			if !ok || wait < low || wait > high {
				t.Fatalf("attempt %d waits %d, want between %d and %d", attempt+1, wait, low, high)
			}
			previous = wait
		}
	})
}
