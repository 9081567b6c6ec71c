package policytest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// A Clock is a [policy.Clock] that stands still until [Clock.Advance] moves it. It
// is safe for concurrent use.
type Clock struct {
	mu      sync.Mutex // guards the fields below; not held while a timer's func runs
	set     time.Time  // what Now was at setAt
	setAt   time.Duration
	elapsed time.Duration
	made    uint64
	timers  []*timer // by due, then by number
}

// NewClock makes a clock that shows start, any time at all, and has Elapsed 0.
func NewClock(start time.Time) *Clock {
	return &Clock{set: start.Round(0)} // without the reading of another clock
}

// Now implements [policy.Clock]: the start, or what Set said last, and what Advance
// added since.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set.Add(c.elapsed - c.setAt)
}

// Elapsed implements [policy.Clock]: the sum of what Advance added. It saturates.
func (c *Clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed
}

// Set steps Now to t, forward or back, as an operator sets a wall clock. Elapsed and
// the timers do not notice.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set, c.setAt = t.Round(0), c.elapsed
}

// AfterFunc implements [policy.Clock]. Advance runs f, on its own goroutine and with
// no lock held, when the clock stands at the instant that f is due. If d ≤ 0, f runs
// at once, on a goroutine of its own, as with time.AfterFunc: the caller may hold a
// lock that f needs. It panics if f is nil.
func (c *Clock) AfterFunc(d time.Duration, f func()) policy.Timer {
	if f == nil {
		panic("policytest: AfterFunc(nil): must not be nil")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	t := &timer{clock: c, due: later(c.elapsed, d), number: c.made, f: f}
	if d <= 0 {
		go f()
		return t
	}
	at, _ := slices.BinarySearchFunc(c.timers, t, (*timer).compare)
	c.timers = slices.Insert(c.timers, at, t)
	return t
}

// Advance moves the time by d and runs, on the caller's goroutine, what falls due on
// the way: in the order of due time, then of creation, each with the clock standing
// at its instant. That includes timers made by those that run. Advance(0) does
// nothing; it panics if d < 0.
//
// A timer's func may call any method of the clock, but must not wait for a further
// Advance by the same goroutine. Calls of Advance that overlap, as when a timer's
// func calls it, each begin where the clock stands and pass at the same time: they
// do not add up.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic(fmt.Sprintf("policytest: Advance(%v): must be at least 0", d))
	}
	c.mu.Lock()
	end := later(c.elapsed, d)
	c.mu.Unlock()
	for f := c.next(end); f != nil; f = c.next(end) {
		f()
	}
}

// Pending is the number of timers that have neither fired nor been stopped: 0 once
// nothing is left behind.
func (c *Clock) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// WithTimeout is context.WithTimeout on this clock: see [policy.WithTimeout].
func (c *Clock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return policy.WithTimeout(ctx, c, d, nil)
}

// next moves to the first timer due by end and takes it, or moves to end.
func (c *Clock) next(end time.Duration) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 || c.timers[0].due > end {
		c.elapsed = max(c.elapsed, end) // an Advance by a timer's func may have passed it
		return nil
	}
	t := c.timers[0]
	c.timers = slices.Delete(c.timers, 0, 1)
	c.elapsed = max(c.elapsed, t.due)
	return t.f
}

// untilNext is the time to the first pending timer.
func (c *Clock) untilNext() (d time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return 0, false
	}
	return max(0, c.timers[0].due-c.elapsed), true
}

type timer struct {
	clock  *Clock
	due    time.Duration
	number uint64
	f      func()
}

func (t *timer) compare(other *timer) int {
	return cmp.Or(cmp.Compare(t.due, other.due), cmp.Compare(t.number, other.number))
}

// Stop implements [policy.Timer].
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	at, pending := slices.BinarySearchFunc(t.clock.timers, t, (*timer).compare)
	if pending {
		t.clock.timers = slices.Delete(t.clock.timers, at, at+1)
	}
	return pending
}

// later is elapsed plus d, as far as a Duration goes.
func later(elapsed, d time.Duration) time.Duration {
	if d > math.MaxInt64-elapsed {
		return math.MaxInt64
	}
	return elapsed + d
}
