package policy_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

var (
	errCall  = errors.New("call failed")
	errGone  = errors.New("the caller left")
	errLimit = errors.New("limit reached")

	start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
)

// A context of a fake clock and one of the system's, in a bubble, go the same way.
func TestWithTimeout(t *testing.T) {
	tests := []struct {
		name  string
		outer time.Duration // the caller's deadline; 0: none
		leave time.Duration // when the caller cancels; 0: never
		limit time.Duration
		cause error
		end   time.Duration
		err   error
		why   error
	}{
		{"limit", 0, 0, time.Second, errLimit, time.Second, context.DeadlineExceeded, errLimit},
		{"no cause", 0, 0, time.Second, nil, time.Second, context.DeadlineExceeded, context.DeadlineExceeded},
		{"at once", 0, 0, 0, errLimit, 0, context.DeadlineExceeded, errLimit},
		{"negative", 0, 0, -time.Second, errLimit, 0, context.DeadlineExceeded, errLimit},
		{"caller leaves first", 0, time.Second, time.Minute, errLimit, time.Second, context.Canceled, errGone},
		{"caller's deadline first", time.Second, 0, time.Minute, errLimit, time.Second, context.DeadlineExceeded, context.DeadlineExceeded},
		{"caller's deadline later", time.Minute, 0, time.Second, errLimit, time.Second, context.DeadlineExceeded, errLimit},
		{"caller leaves too late", 0, time.Minute, time.Second, errLimit, time.Second, context.DeadlineExceeded, errLimit},
	}
	for _, tt := range tests {
		play := func(t *testing.T, clock policy.Clock, pass func(time.Duration)) {
			caller, leave := context.WithCancelCause(t.Context())
			defer leave(nil)
			if tt.outer > 0 {
				var cancel context.CancelFunc
				caller, cancel = policy.WithTimeout(caller, clock, tt.outer, nil)
				defer cancel()
			}
			ctx, cancel := policy.WithTimeout(caller, clock, tt.limit, tt.cause)
			defer cancel()
			child, cancel := context.WithCancel(context.WithValue(ctx, key{}, "value"))
			defer cancel()
			var after error
			context.AfterFunc(ctx, func() { after = context.Cause(ctx) })

			if tt.leave > 0 {
				clock.AfterFunc(tt.leave, func() { leave(errGone) })
			}
			if tt.end > 0 {
				pass(tt.end - 1)
				if ctx.Err() != nil || child.Err() != nil || context.Cause(ctx) != nil {
					t.Errorf("ended early: %v", context.Cause(ctx))
				}
				pass(1)
			}
			for _, c := range []context.Context{ctx, child} {
				if c.Err() != tt.err || context.Cause(c) != tt.why {
					t.Errorf("ended with %v because of %v, want %v because of %v", c.Err(), context.Cause(c), tt.err, tt.why)
				}
				<-c.Done()
			}
			synctest.Wait()
			if after != tt.why {
				t.Errorf("an AfterFunc saw %v, want %v", after, tt.why)
			}
		}
		t.Run(tt.name+" on the system's clock", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				play(t, policy.SystemClock, func(d time.Duration) { time.Sleep(d); synctest.Wait() })
			})
		})
		t.Run(tt.name+" on a fake clock", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := policytest.NewClock(start)
				play(t, clock, clock.Advance)
			})
		})
	}
}

type key struct{}

// What a clock knows of a real deadline, and package context of a fake one, is
// nothing: neither may take part, whichever is in the past of the other.
func TestWithTimeoutBelowAnother(t *testing.T) {
	for _, now := range []time.Time{{}, start, time.Now().Add(1000 * time.Hour)} {
		clock := policytest.NewClock(now)
		outer, cancel := clock.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		inner, cancel := policy.WithTimeout(outer, clock, time.Minute, errLimit)
		defer cancel()
		clock.Advance(time.Minute)
		if inner.Err() != context.DeadlineExceeded || context.Cause(inner) != errLimit || outer.Err() != nil {
			t.Errorf("at %v: inner ended with %v because of %v, outer with %v", now, inner.Err(), context.Cause(inner), outer.Err())
		}
		clock.Advance(time.Hour)
		if outer.Err() != context.DeadlineExceeded {
			t.Errorf("at %v: outer ended with %v", now, outer.Err())
		}
	}
}

func TestWithTimeoutOfADoneCaller(t *testing.T) {
	caller, leave := context.WithCancelCause(t.Context())
	leave(errGone)
	for _, d := range []time.Duration{0, time.Second} {
		ctx, cancel := policytest.NewClock(start).WithTimeout(caller, d)
		defer cancel()
		select {
		case <-ctx.Done():
		default:
			t.Errorf("WithTimeout(%v) of a done ctx is not done", d)
		}
		if ctx.Err() != context.Canceled || context.Cause(ctx) != errGone {
			t.Errorf("ended with %v because of %v, want the caller's", ctx.Err(), context.Cause(ctx))
		}
	}
}

// The caller's end is seen at once, cause and all, by whoever asks Err first.
func TestWithTimeoutFollowsAtOnce(t *testing.T) {
	for range 1000 {
		caller, leave := context.WithCancelCause(t.Context())
		ctx, cancel := policytest.NewClock(start).WithTimeout(caller, time.Second)
		leave(errGone)
		if err := policy.ContextError(ctx); !errors.Is(err, errGone) || !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v, want the caller's", err)
		}
		cancel()
	}
}

func TestWithTimeoutDeadline(t *testing.T) {
	clock := policytest.NewClock(start)
	ctx, cancel := clock.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	clock.Advance(time.Second)
	if d, ok := ctx.Deadline(); !ok || !d.Equal(start.Add(time.Minute)) {
		t.Errorf("deadline %v, want a minute after the start", d)
	}
	clock.Set(start.Add(-time.Hour))
	if d, _ := ctx.Deadline(); !d.Equal(start.Add(59*time.Second - time.Hour)) {
		t.Errorf("deadline %v after a step back, want what remains, 59s, after Now", d)
	}
	if policy.Outlasts(ctx, clock, 59*time.Second-1) || !policy.Outlasts(ctx, clock, 59*time.Second) {
		t.Error("what remains is 59s, whatever the wall clock says")
	}
	clock.Set(start.Add(time.Hour))
	clock.Advance(58 * time.Second)
	if ctx.Err() != nil {
		t.Error("ended by a step of the wall clock")
	}

	long, cancel := clock.WithTimeout(t.Context(), math.MaxInt64)
	defer cancel()
	if d, _ := long.Deadline(); d.Before(start.AddDate(200, 0, 0)) {
		t.Errorf("deadline %v of the longest limit", d)
	}
}

// early is a clock that starts long before 0.
type early struct{ *policytest.Clock }

func (c early) Elapsed() time.Duration { return math.MinInt64 + c.Clock.Elapsed() }

func TestWithTimeoutOnAnEarlyClock(t *testing.T) {
	clock := early{policytest.NewClock(start)}
	ctx, cancel := policy.WithTimeout(t.Context(), clock, time.Minute, nil)
	defer cancel()
	clock.Advance(time.Second)
	if deadline, ok := ctx.Deadline(); !ok || !deadline.Equal(start.Add(time.Minute)) {
		t.Errorf("deadline %v, want a minute after %v", deadline, start)
	}
}

func TestWithTimeoutLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		clock := policytest.NewClock(start)
		caller, leave := context.WithCancel(t.Context())
		for range 100 {
			ctx, cancel := clock.WithTimeout(caller, time.Minute)
			child, stop := context.WithCancel(ctx)
			cancel()
			cancel()
			defer stop()
			if ctx.Err() != context.Canceled || child.Err() != context.Canceled {
				t.Fatalf("after cancel: %v, %v", ctx.Err(), child.Err())
			}
		}
		if clock.Pending() != 0 {
			t.Errorf("%d timers left", clock.Pending())
		}
		leave()
	})
}

// Whatever comes first, everybody agrees on it.
func TestWithTimeoutRace(t *testing.T) {
	for range 300 {
		clock := policytest.NewClock(start)
		caller, leave := context.WithCancelCause(t.Context())
		ctx, cancel := policy.WithTimeout(caller, clock, 1, errLimit)
		child, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		all.Go(func() { clock.Advance(1) })
		all.Go(func() { leave(errGone) })
		all.Go(func() {
			for ctx.Err() == nil {
				runtime.Gosched()
			}
			if cause := context.Cause(ctx); cause != errLimit && cause != errGone {
				t.Errorf("ended because of %v", cause)
			}
		})
		all.Wait()
		<-child.Done()
		if child.Err() != ctx.Err() || context.Cause(child) != context.Cause(ctx) {
			t.Errorf("child ended with %v, its parent with %v", context.Cause(child), context.Cause(ctx))
		}
		stop()
		cancel()
	}
}
