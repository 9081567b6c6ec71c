package policy

import (
	"context"
	"time"
)

// A Clock gives policies the time. It must be safe for concurrent use.
type Clock interface {
	// Now is the time of day, for showing. It may be stepped.
	Now() time.Time
	// Elapsed is the time since a fixed start, at least 0. It never steps and never
	// runs back; policies measure with nothing else.
	Elapsed() time.Duration
	// AfterFunc runs f once d has passed, at once if d ≤ 0.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is a pending [Clock.AfterFunc]. Stop reports whether it kept f from
// running.
type Timer interface{ Stop() bool }

// SystemClock is the machine's clock, and the default of every policy that reads one. A
// reading of Elapsed costs some 25 ns.
var SystemClock Clock = systemClock{}

// start is when the process started, and epoch the time before it since 2000, when
// every synctest bubble begins: a bubble has no monotonic reading, and its Elapsed would
// be negative without it.
var (
	start = time.Now()
	epoch = start.Sub(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC))
)

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Elapsed() time.Duration { return epoch + time.Since(start) }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Sleep waits for d on clock, or until ctx is done, and then returns
// [ContextError]. It leaves no timer behind. It does not wait if d ≤ 0.
func Sleep(ctx context.Context, clock Clock, d time.Duration) error {
	if err := ContextError(ctx); err != nil || d <= 0 {
		return err
	}
	elapsed := make(chan struct{})
	timer := clock.AfterFunc(d, func() { close(elapsed) })
	defer timer.Stop()
	select {
	case <-elapsed:
	case <-ctx.Done():
	}
	return ContextError(ctx)
}

// Outlasts tells whether a wait of d, begun now, would not be over before ctx's
// deadline, as clock sees it: such a wait is not worth beginning.
func Outlasts(ctx context.Context, clock Clock, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && d >= deadline.Sub(clock.Now())
}
