// Package window counts the calls of a rolling window: the last n calls, or those of
// the last d. It takes the time as an argument, and its memory is fixed.
//
// A window is not safe for concurrent use.
package window

import (
	"math"
	"math/bits"
	"time"
)

// Counts is what a window holds.
type Counts struct{ Calls, Failures, Slow int }

func (c *Counts) add(failure, slow bool) {
	c.Calls++
	if failure {
		c.Failures++
	}
	if slow {
		c.Slow++
	}
}

func (c *Counts) subtract(other Counts) {
	c.Calls -= other.Calls
	c.Failures -= other.Failures
	c.Slow -= other.Slow
}

// A Window is a [Last] or a [Within].
type Window interface {
	Record(now time.Duration, failure, slow bool)
	Counts(now time.Duration) Counts
	Reset(now time.Duration)
}

// A Last is a window over the last calls, however old.
type Last struct {
	ring   []call
	next   int // where the next call goes, in place of the oldest
	counts Counts
}

type call uint8

const (
	failed call = 1 << iota
	slowed
)

// NewLast returns an empty window over the last n calls, n ≥ 1, which takes n bytes.
func NewLast(n int) *Last { return &Last{ring: make([]call, n)} }

// Record adds a call and drops the oldest if the window is full.
func (w *Last) Record(_ time.Duration, failure, slow bool) {
	if w.counts.Calls == len(w.ring) {
		oldest := w.ring[w.next]
		w.counts.subtract(oldest.counts())
	}
	var c call
	if failure {
		c |= failed
	}
	if slow {
		c |= slowed
	}
	w.ring[w.next] = c
	w.counts.add(failure, slow)
	if w.next++; w.next == len(w.ring) {
		w.next = 0
	}
}

func (c call) counts() Counts {
	return Counts{Calls: 1, Failures: int(c & failed), Slow: int(c & slowed / slowed)}
}

// Counts returns what the window holds.
func (w *Last) Counts(time.Duration) Counts { return w.counts }

// Reset empties the window.
func (w *Last) Reset(time.Duration) { w.next, w.counts = 0, Counts{} }

// Buckets is how many buckets a [Within] has; they expire one at a time.
const Buckets = 10

// A Within is a window over a span of time, in buckets of a tenth of it. A call
// counts until its bucket leaves the window: a span after the bucket began.
type Within struct {
	span    time.Duration
	buckets [Buckets]Counts
	total   Counts

	origin  time.Duration // when bucket 0 began
	current int64         // number of the newest bucket; it lies at current % Buckets
	end     time.Duration // when the newest bucket ends
}

// NewWithin returns an empty window over span, at least [Buckets] nanoseconds, whose
// buckets are counted from now.
func NewWithin(span, now time.Duration) *Within {
	w := &Within{span: span}
	w.Reset(now)
	return w
}

// Record adds a call to the newest bucket. A now from before it counts as its
// beginning: timestamps may come out of order.
func (w *Within) Record(now time.Duration, failure, slow bool) {
	w.advance(now)
	w.buckets[w.current%Buckets].add(failure, slow)
	w.total.add(failure, slow)
}

// Counts drops what has expired and returns the rest.
func (w *Within) Counts(now time.Duration) Counts {
	w.advance(now)
	return w.total
}

// Reset empties the window and counts buckets from now.
func (w *Within) Reset(now time.Duration) {
	*w = Within{span: w.span, origin: now}
	w.end = w.endOf(0)
}

func (w *Within) advance(now time.Duration) {
	if now < w.end {
		return
	}
	number := w.numberAt(now)
	if number-w.current >= Buckets {
		w.buckets, w.total = [Buckets]Counts{}, Counts{}
	} else {
		for i := w.current + 1; i <= number; i++ {
			w.total.subtract(w.buckets[i%Buckets])
			w.buckets[i%Buckets] = Counts{}
		}
	}
	w.current, w.end = number, w.endOf(number)
}

// numberAt is the number of the bucket that now ≥ origin falls into:
// (now - origin) · Buckets / span, whose product may need more than 64 bits.
func (w *Within) numberAt(now time.Duration) int64 {
	high, low := bits.Mul64(uint64(now-w.origin), Buckets)
	number, _ := bits.Div64(high, low, uint64(w.span)) // no overflow: high < Buckets ≤ span
	return int64(number)
}

// endOf is the first instant after bucket number: origin + (number + 1) · span /
// Buckets, rounded up, or the end of time.
func (w *Within) endOf(number int64) time.Duration {
	high, low := bits.Mul64(uint64(number)+1, uint64(w.span))
	low, carry := bits.Add64(low, Buckets-1, 0)
	high += carry
	if high >= Buckets {
		return math.MaxInt64
	}
	end, _ := bits.Div64(high, low, Buckets)
	if end > uint64(math.MaxInt64-max(w.origin, 0)) {
		return math.MaxInt64
	}
	return w.origin + time.Duration(end)
}
