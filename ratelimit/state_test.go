package ratelimit

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"
)

// exact is the algorithm on rational numbers of nanoseconds.
type exact struct {
	interval, tolerance, arrival big.Rat
	last                         time.Duration
}

func newExact(r Rate, burst int, start time.Duration) *exact {
	e := &exact{last: start}
	e.arrival.SetInt64(int64(start))
	e.interval.SetFrac(big.NewInt(int64(r.period)), big.NewInt(int64(r.n)))
	e.tolerance.Mul(&e.interval, new(big.Rat).SetInt64(int64(burst-1)))
	return e
}

func (e *exact) at(now time.Duration) *big.Rat {
	e.last = max(e.last, now)
	return new(big.Rat).SetInt64(int64(e.last))
}

func (e *exact) next(now time.Duration) *big.Rat {
	at := e.at(now)
	if e.arrival.Cmp(at) > 0 {
		at.Set(&e.arrival)
	}
	return at
}

func (e *exact) take(now time.Duration) bool {
	if e.wait(now, 0) > 0 {
		return false
	}
	e.arrival.Add(e.next(now), &e.interval)
	return true
}

func (e *exact) wait(now time.Duration, ahead int) time.Duration {
	due := e.next(now)
	due.Add(due, new(big.Rat).Mul(&e.interval, new(big.Rat).SetInt64(int64(ahead))))
	due.Sub(due, &e.tolerance).Sub(due, e.at(now))
	ns := new(big.Int).Neg(due.Num())
	ns.Neg(ns.Div(ns, due.Denom())) // Div rounds down, so this rounds up
	switch {
	case ns.Sign() <= 0:
		return 0
	case !ns.IsInt64():
		return math.MaxInt64
	}
	return time.Duration(ns.Int64())
}

func (e *exact) available(now time.Duration) float64 {
	left := e.at(now)
	left.Add(left, &e.tolerance).Add(left, &e.interval).Sub(left, e.next(now))
	f, _ := left.Quo(left, &e.interval).Float64()
	return f
}

// FuzzState compares the state with exact arithmetic, and with the bound that it is
// for: in no window of length t more than burst + rate·t.
func FuzzState(f *testing.F) {
	f.Add(10, int64(time.Second), 1, int64(0), []byte{0, 1, 2, 40, 41, 80, 255})
	f.Add(3, int64(1), 2, int64(0), []byte{0, 0, 0, 0, 1, 1, 1, 1})
	f.Add(1, int64(24*time.Hour), 5, int64(0), []byte{0, 0, 0, 0, 0, 0, 200, 16, 16})
	f.Add(7, int64(time.Second), 3, int64(0), []byte{16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 17})
	f.Add(math.MaxInt, int64(math.MaxInt64), math.MaxInt, int64(0), []byte{0, 1, 2, 3, 250, 251})
	f.Add(1, int64(math.MaxInt64), math.MaxInt, int64(0), []byte{0, 1, 2, 3, 250, 251, 252})
	f.Add(math.MaxInt, int64(1), math.MaxInt, int64(0), []byte{0, 1, 2, 3, 250, 251, 252})
	f.Add(math.MaxInt, int64(math.MaxInt64), math.MaxInt, int64(math.MinInt64), []byte{0, 1, 2, 250, 251, 252})
	f.Add(7, int64(time.Second), 3, int64(-time.Hour), []byte{16, 16, 16, 130, 16, 16, 170, 16, 16, 16, 17})
	f.Add(7, int64(time.Second), 3, int64(math.MaxInt64), []byte{16, 16, 16, 16})
	f.Fuzz(func(t *testing.T, n int, period int64, burst int, start int64, steps []byte) {
		if n < 1 || period < 1 || burst < 1 || len(steps) > 200 {
			t.Skip()
		}
		r := Per(n, time.Duration(period))
		now := time.Duration(start)
		s, e := newState(r, burst, now), newExact(r, burst, now)
		var taken []time.Duration
		for i, step := range steps {
			now = later64(now, stride(r, step))
			ahead := int(step % 5)
			if got, want := s.wait(now, ahead), e.wait(now, ahead); got != want {
				t.Fatalf("%v burst %d step %d: wait %v at %v with %d ahead, want %v", r, burst, i, got, now, ahead, want)
			}
			if got, want := s.available(now), e.available(now); math.Abs(got-want) > 1e-9*math.Max(1, want) {
				t.Fatalf("%v burst %d step %d: %v available at %v, want %v", r, burst, i, got, now, want)
			}
			got, want := s.take(now), e.take(now)
			if got != want {
				t.Fatalf("%v burst %d step %d: taken %t at %v, want %t", r, burst, i, got, now, want)
			}
			if got {
				taken = append(taken, s.last)
			}
		}
		bound(t, r, burst, taken)
	})
}

// stride makes a step of the clock, in units that matter to r, back ones included.
func stride(r Rate, step byte) time.Duration {
	interval := r.period / time.Duration(r.n)
	switch {
	case step < 128:
		return interval/16*time.Duration(step%32) + time.Duration(step/32)
	case step < 160:
		return -interval / 3
	case step < 200:
		return time.Duration(step - 160)
	case step < 250:
		return 10 * 365 * 24 * time.Hour
	default:
		return math.MaxInt64 - time.Duration(step)
	}
}

func later64(now, d time.Duration) time.Duration {
	if d > 0 && now > math.MaxInt64-d {
		return math.MaxInt64
	}
	return now + d
}

// bound checks each window that begins and ends with a taken token.
func bound(t *testing.T, r Rate, burst int, taken []time.Duration) {
	t.Helper()
	for i := range taken {
		for j := i; j < len(taken); j++ {
			allowed := new(big.Rat).SetFrac(big.NewInt(int64(r.n)), big.NewInt(int64(r.period)))
			window := new(big.Int).Sub(big.NewInt(int64(taken[j])), big.NewInt(int64(taken[i])))
			allowed.Mul(allowed, new(big.Rat).SetInt(window))
			allowed.Add(allowed, new(big.Rat).SetInt64(int64(burst)))
			if n := j - i + 1; allowed.Cmp(new(big.Rat).SetInt64(int64(n))) < 0 {
				t.Fatalf("%v burst %d: %d tokens from %v to %v", r, burst, n, taken[i], taken[j])
			}
		}
	}
}

// Rates hold to 0.1 %, from one a day to 10⁹ a second, for a caller that takes each
// token when the state says that it is due.
func TestRateHolds(t *testing.T) {
	const tokens, burst = 10_000, 2 // a burst above 1 makes up for the clock's whole nanoseconds
	tests := []Rate{
		Per(1, 24*time.Hour), Per(1, time.Hour), Per(3, time.Second), Per(7, time.Minute), Per(1000, time.Second),
		Per(666_666_667, time.Second), Per(999_999_937, time.Second), Per(1e9, time.Second), Per(1, time.Nanosecond),
		Per(math.MaxInt, math.MaxInt64), Per(math.MaxInt, 365*24*time.Hour*290), Per(math.MaxInt/7, math.MaxInt64),
	}
	for _, r := range tests {
		t.Run(r.String(), func(t *testing.T) {
			s := newState(r, burst, 0)
			var now time.Duration
			for range tokens + burst {
				now += s.wait(now, 0)
				if !s.take(now) {
					t.Fatalf("no token at %v, when it was due", now)
				}
			}
			want := tokens * float64(r.period) / float64(r.n)
			if got := float64(now); math.Abs(got-want) > want/1000 {
				t.Errorf("%d tokens in %v, want %v", tokens, now, time.Duration(want))
			}
		})
	}
}

func TestIdleForYears(t *testing.T) { // BEHAVIOUR 62, and beyond
	const year = 365 * 24 * time.Hour
	for _, idle := range []time.Duration{time.Hour, year, 100 * year, math.MaxInt64} {
		for _, r := range []Rate{Per(10, time.Minute), Per(1e9, time.Second), Per(3, time.Nanosecond)} {
			t.Run(fmt.Sprint(r, idle), func(t *testing.T) {
				s := newState(r, 3, 0)
				for s.take(0) {
				}
				if got := s.available(idle); got != 3 {
					t.Errorf("%v available, want 3", got)
				}
				for range 3 {
					if !s.take(idle) {
						t.Error("refused within the burst")
					}
				}
				if s.take(idle) {
					t.Error("taken beyond the burst")
				}
			})
		}
	}
}

func TestTimeNeverRunsBack(t *testing.T) {
	s := newState(Per(10, time.Second), 1, 0)
	if !s.take(time.Hour) || s.take(time.Minute) || s.take(-time.Hour) {
		t.Error("a late reading of the clock took a token")
	}
	if got := s.wait(math.MinInt64, 0); got != 100*time.Millisecond {
		t.Errorf("wait %v from a late reading, want 100ms from the last", got)
	}
}

func TestPutBack(t *testing.T) {
	s := newState(Per(10, time.Second), 2, 0)
	s.take(0)
	first := s.arrival
	s.take(0)
	second := s.arrival
	s.putBack(first) // not the last: a window would have one too many
	if got := s.available(0); got != 0 {
		t.Errorf("%v available after an older token came back, want 0", got)
	}
	s.putBack(second)
	if got := s.available(0); got != 1 {
		t.Errorf("%v available after the last token came back, want 1", got)
	}
}

func TestWaitSaturates(t *testing.T) {
	tests := []struct {
		rate  Rate
		ahead int
		want  time.Duration
	}{
		{Per(1, math.MaxInt64), 0, math.MaxInt64},
		{Per(1, math.MaxInt64), 1, math.MaxInt64},
		{Per(1, math.MaxInt64), math.MaxInt32, math.MaxInt64},
		{Per(2, math.MaxInt64), 0, math.MaxInt64/2 + 1},
		{Per(math.MaxInt, math.MaxInt64), 5, 6},
		{Per(3, 1), 0, 1},
		{Per(3, 1), 2, 1},
		{Per(3, 1), 3, 2},
	}
	for _, tt := range tests {
		s := newState(tt.rate, 1, 0)
		s.take(0)
		if got := s.wait(0, tt.ahead); got != tt.want {
			t.Errorf("%v with %d ahead: wait %d, want %d", tt.rate, tt.ahead, got, tt.want)
		}
	}
}

func TestRateString(t *testing.T) {
	tests := map[string]Rate{
		"100/1s":      Per(100, time.Second),
		"1/24h":       Per(1, 24*time.Hour),
		"6/1m":        Per(6, time.Minute),
		"5/10m":       Per(5, 10*time.Minute),
		"5/1h10m":     Per(5, 70*time.Minute),
		"2/1h30m":     Per(2, 90*time.Minute),
		"1/1m30s":     Per(1, 90*time.Second),
		"1/1h0m5s":    Per(1, time.Hour+5*time.Second),
		"3/1ns":       Per(3, time.Nanosecond),
		"10/250ms":    Per(10, 250*time.Millisecond),
		"1000/1h0m1s": Per(1000, time.Hour+time.Second),
		"0/0s":        {},
	}
	for want, r := range tests {
		if got := r.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
