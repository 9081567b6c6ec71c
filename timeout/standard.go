package timeout

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// A standard is what a callContext hands Done and Value to.
type standard struct {
	context.Context

	cancel context.CancelFunc
	cause  *ExceededError // the limit's; nil where the caller's end comes first
	tap    *tap           // has the limit's timer, where that may have to be stopped
}

// following ends when parent does.
func following(parent context.Context) *standard {
	ctx, cancel := context.WithCancel(parent)
	return &standard{Context: ctx, cancel: cancel}
}

// expired is a context with the values of parent, ended by a deadline.
func expired(parent context.Context, cause error) context.Context {
	ctx, cancel := context.WithDeadlineCause(context.WithoutCancel(parent), time.Time{}, cause)
	cancel()
	return ctx
}

// A tap is the clock for policy.WithTimeout. It has its hands on the one timer that is
// set there, to stop it alone, and to run what it would run.
type tap struct {
	policy.Clock
	state *atomic.Uint32 // the callContext's

	timer policy.Timer
	end   func()
}

// AfterFunc implements [policy.Clock].
func (t *tap) AfterFunc(d time.Duration, f func()) policy.Timer {
	t.end = f
	t.timer = t.Clock.AfterFunc(d, func() { t.strike() })
	return t.timer
}

// strike ends the context, or reports false if the limit is lifted. It may be called
// again: the state may have been struck for another standard, which was one too many.
func (t *tap) strike() bool {
	if !t.state.CompareAndSwap(live, struck) && t.state.Load() != struck {
		return false
	}
	t.end()
	return true
}

// stop may be called on none.
func (t *tap) stop() {
	if t != nil {
		t.timer.Stop()
	}
}

// system is the SystemClock. A ctx's timer runs on it too, so what it shows as elapsed
// can be made a deadline with no other reading: this long after began. The time of day
// of such a deadline is out of date once the machine's clock has been set, so it is for
// timers only.
var (
	system = policy.SystemClock
	began  = time.Now()
)

func (t *Timeout) elapsed() time.Duration {
	if t.settings.system {
		return time.Since(began)
	}
	return t.settings.clock.Elapsed()
}

// monotonic tells whether t is comparable with began whatever the time of day.
func monotonic(t time.Time) bool { return t != t.Round(0) }

func saturated(start, limit time.Duration) time.Duration {
	if start > 0 && limit > math.MaxInt64-start {
		return math.MaxInt64
	}
	return start + limit
}
