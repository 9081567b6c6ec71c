package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/timeout"
)

// Whoever asks first once the limit has passed, and whatever for, learns of it.
func TestFirstAsk(t *testing.T) {
	asks := map[string]func(ctx context.Context) bool{
		"Err":   func(ctx context.Context) bool { return ctx.Err() == context.DeadlineExceeded },
		"Cause": func(ctx context.Context) bool { return errors.Is(context.Cause(ctx), timeout.ErrExceeded) },
		"Done": func(ctx context.Context) bool {
			<-ctx.Done()
			return errors.Is(context.Cause(ctx), timeout.ErrExceeded)
		},
		"a child": func(ctx context.Context) bool {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			return child.Err() == context.DeadlineExceeded && errors.Is(context.Cause(child), timeout.ErrExceeded)
		},
	}
	for name, ask := range asks {
		for _, keeper := range []bool{false, true} {
			bubbled(t, fmt.Sprintf("%s/keeper %t", name, keeper), func(t *testing.T) {
				body := func(ctx context.Context) {
					time.Sleep(50 * ms)
					if !ask(ctx) {
						t.Errorf("asked for %s, did not learn of the limit", name)
					}
				}
				var call policy.Call = policy.CallFunc(func(ctx context.Context) (any, error) { body(ctx); return nil, nil })
				if keeper {
					call = &owner{invoke: body}
				}
				timeout.New(50*ms).Wrap(policy.Invoke)(t.Context(), call)
			})
		}
	}
}

// Done is one channel for good, and closed no later than Err tells of the limit.
func TestDoneIsOne(t *testing.T) {
	for _, keeper := range []bool{false, true} {
		bubbled(t, fmt.Sprintf("keeper %t", keeper), func(t *testing.T) {
			body := func(ctx context.Context) {
				before := ctx.Done()
				time.Sleep(50 * ms) // to the instant of the timer
				checkEnded(t, ctx, context.DeadlineExceeded, true)
				if ctx.Done() != before {
					t.Error("another channel")
				}
			}
			if keeper {
				timeout.New(50*ms).Wrap(policy.Invoke)(t.Context(), &owner{invoke: body})
				return
			}
			within(t.Context(), timeout.New(50*ms), body)
		})
	}
}

// A clock whose timers are late: Err does not wait for them, and Done and Cause agree
// with what it said.
func TestLateTimer(t *testing.T) {
	for _, asked := range []bool{false, true} {
		clock := &timerless{Clock: policytest.NewClock(time.Unix(1e9, 0))}
		_, err := timeout.New(50*ms, timeout.Clock(clock)).Wrap(policy.Invoke)(t.Context(), policy.CallFunc(func(ctx context.Context) (any, error) {
			child, cancel := ctx, func() {}
			if asked {
				ctx.Done()
				child, cancel = context.WithCancel(ctx)
			}
			defer cancel()
			clock.Advance(50 * ms)
			if ctx.Err() != context.DeadlineExceeded {
				t.Errorf("Err %v at the limit", ctx.Err())
			}
			checkEnded(t, ctx, context.DeadlineExceeded, true)
			return nil, errors.Join(errCall, child.Err())
		}))
		checkExceeded(t, err, "timeout")
	}
}

// On the real clock, both have ended before anybody asks: the earlier deadline has struck.
func TestEarlierDeadline(t *testing.T) {
	for _, keeper := range []bool{false, true} {
		for deadline, exceeded := range map[time.Duration]bool{-time.Hour: false, time.Hour: true} {
			parent, cancel := context.WithDeadline(t.Context(), time.Now())
			defer cancel()
			body := func(ctx context.Context) {
				for start := time.Now(); time.Since(start) <= 0; { // a nanosecond passes
				}
				checkEnded(t, ctx, context.DeadlineExceeded, exceeded)
			}
			shown := &lying{Context: parent, deadline: time.Now().Add(deadline)}
			var call policy.Call = policy.CallFunc(func(ctx context.Context) (any, error) { body(ctx); return nil, nil })
			if keeper {
				call = &owner{invoke: body}
			}
			timeout.New(1).Wrap(policy.Invoke)(shown, call)
		}
	}
}

// lying is a context that lives when the policy looks first, has ended by its deadline
// when the call asks, and shows another deadline than that.
type lying struct {
	context.Context
	deadline time.Time
	asked    atomic.Bool
}

func (l *lying) Deadline() (time.Time, bool) { return l.deadline, true }

func (l *lying) Err() error {
	if l.asked.Swap(true) {
		return l.Context.Err()
	}
	return nil
}

// timerless has timers that never fire.
type timerless struct{ *policytest.Clock }

func (c *timerless) AfterFunc(time.Duration, func()) policy.Timer { return unfired{} }

type unfired struct{}

func (unfired) Stop() bool { return true }
