package timeout

import (
	"context"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// A standard is what a callContext hands Done and Value to.
type standard struct {
	context.Context

	cancel context.CancelFunc
	cause  *ExceededError // the limit's; nil where the caller's end comes first
	tap    *tapClock      // has the limit's timer, where that may have to be stopped
}

// lift stops the timer, and nothing else.
func (s *standard) lift() {
	if s.tap != nil && s.tap.timer != nil {
		s.tap.timer.Stop()
	}
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

// done is closed.
var done = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// A tapClock hands out the one timer it has set, which policy.WithTimeout keeps to
// itself.
type tapClock struct {
	policy.Clock
	timer policy.Timer
}

func (c *tapClock) AfterFunc(d time.Duration, f func()) policy.Timer {
	c.timer = c.Clock.AfterFunc(d, f)
	return c.timer
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
