package ratelimit

import (
	"math"
	"math/bits"
	"time"
)

// state is the generic cell rate algorithm: a token may be taken at now if the
// theoretical arrival time is not more than the tolerance ahead of now, and moves it
// one interval on.
//
// It counts in ticks of 1/n ns. In them an instant is now·n, the interval is the
// period and the tolerance (burst-1)·period: whole numbers, so that no rate is bent
// by rounding and nothing is divided on the way. All of them fit: n, period and burst
// are below 2⁶³, and now, counted from the least Duration, is below 2⁶⁴, so now·n +
// tolerance + period is below 2¹²⁸.
type state struct {
	n, period uint64
	tolerance ticks
	arrival   ticks         // theoretical arrival time of the next token's taker
	last      time.Duration // the latest now; time does not run back from it
}

// newState is a full burst. Time counts from start on.
func newState(r Rate, burst int, start time.Duration) state {
	return state{
		n:         uint64(r.n),
		period:    uint64(r.period),
		tolerance: product(uint64(burst-1), uint64(r.period)),
		last:      start,
	}
}

// take takes a token if there is one at now.
func (s *state) take(now time.Duration) bool {
	at := s.at(now)
	if at.plus(s.tolerance).less(s.arrival) {
		return false
	}
	s.arrival = later(s.arrival, at).plus(ticks{lo: s.period})
	return true
}

// putBack undoes the take that made arrival what it was, if it was the last: a token
// taken since may have been there for that one's sake only.
func (s *state) putBack(arrival ticks) {
	if s.arrival == arrival {
		s.arrival = arrival.minus(ticks{lo: s.period})
	}
}

// wait is how long after now a token is there for a caller with ahead others before
// it: rounded up, 0 if it is there now, and the longest Duration if it is longer.
func (s *state) wait(now time.Duration, ahead int) time.Duration {
	at := s.at(now)
	due, early := later(s.arrival, at).plus(product(uint64(ahead), s.period)), at.plus(s.tolerance)
	if !early.less(due) {
		return 0
	}
	return due.minus(early).duration(s.n)
}

// available is how many tokens are there at now, fractions included.
func (s *state) available(now time.Duration) float64 {
	at := s.at(now)
	left := at.plus(s.tolerance).plus(ticks{lo: s.period}).minus(later(s.arrival, at))
	return left.float() / float64(s.period)
}

// at is now as ticks since the least Duration. An older now than the last is a reading
// that came late.
func (s *state) at(now time.Duration) ticks {
	s.last = max(s.last, now)
	return product(uint64(s.last)^1<<63, s.n)
}

// ticks is an unsigned number of 128 bits.
type ticks struct{ hi, lo uint64 }

func product(a, b uint64) ticks {
	hi, lo := bits.Mul64(a, b)
	return ticks{hi, lo}
}

func (t ticks) plus(u ticks) ticks {
	lo, carry := bits.Add64(t.lo, u.lo, 0)
	hi, _ := bits.Add64(t.hi, u.hi, carry)
	return ticks{hi, lo}
}

func (t ticks) minus(u ticks) ticks {
	lo, borrow := bits.Sub64(t.lo, u.lo, 0)
	hi, _ := bits.Sub64(t.hi, u.hi, borrow)
	return ticks{hi, lo}
}

func (t ticks) less(u ticks) bool { return t.hi < u.hi || t.hi == u.hi && t.lo < u.lo }

func later(t, u ticks) ticks {
	if t.less(u) {
		return u
	}
	return t
}

// duration is t/n, rounded up, and at most the longest Duration.
func (t ticks) duration(n uint64) time.Duration {
	if t.hi >= n { // the quotient needs more than 64 bits
		return math.MaxInt64
	}
	ns, rest := bits.Div64(t.hi, t.lo, n)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	if rest > 0 {
		ns++
	}
	return time.Duration(ns)
}

func (t ticks) float() float64 { return float64(t.hi)*(1<<64) + float64(t.lo) }
