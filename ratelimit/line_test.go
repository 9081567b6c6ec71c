package ratelimit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/ratelimit"
)

// BEHAVIOUR 63, 64, and rule 3: each case is a crowd that arrives at once.
func TestLine(t *testing.T) {
	type waiter struct {
		leaves   time.Duration // when it is cancelled; 0: it is patient
		deadline time.Duration // 0: none
		ends     time.Duration // when it is answered
		want     error         // nil: admitted
	}
	tests := []struct {
		name    string
		maxWait time.Duration
		crowd   []waiter
		later   time.Duration // when one more comes
		ends    time.Duration // when that one is admitted
	}{
		{
			"BEHAVIOUR 63: refused at once", 250 * ms,
			[]waiter{
				{ends: 0},
				{ends: 100 * ms},
				{ends: 200 * ms},
				{ends: 0, want: ratelimit.ErrExceeded},
				{ends: 0, want: ratelimit.ErrExceeded},
			},
			50 * ms, 300 * ms,
		},
		{
			"BEHAVIOUR 64: the rest move up", time.Second,
			[]waiter{
				{ends: 0},
				{ends: 100 * ms},
				{leaves: 50 * ms, ends: 50 * ms, want: context.Canceled},
				{ends: 200 * ms},
				{ends: 300 * ms},
			},
			50 * ms, 400 * ms,
		},
		{
			"the head leaves", time.Second,
			[]waiter{
				{ends: 0},
				{leaves: 50 * ms, ends: 50 * ms, want: context.Canceled},
				{ends: 100 * ms},
				{ends: 200 * ms},
			},
			60 * ms, 300 * ms,
		},
		{
			"the last leaves", time.Second,
			[]waiter{
				{ends: 0},
				{ends: 100 * ms},
				{leaves: 50 * ms, ends: 50 * ms, want: context.Canceled},
			},
			60 * ms, 200 * ms,
		},
		{
			"all leave", time.Second,
			[]waiter{
				{ends: 0},
				{leaves: 50 * ms, ends: 50 * ms, want: context.Canceled},
				{leaves: 50 * ms, ends: 50 * ms, want: context.Canceled},
			},
			60 * ms, 100 * ms,
		},
		{
			"a deadline that comes too early", time.Second,
			[]waiter{
				{ends: 0},
				{deadline: 100 * ms, ends: 0, want: context.DeadlineExceeded},
				{deadline: 100*ms + 1, ends: 100 * ms},
				{deadline: 200 * ms, ends: 0, want: context.DeadlineExceeded},
				{ends: 200 * ms},
			},
			60 * ms, 300 * ms,
		},
		{
			"MaxWait before the deadline", 50 * ms,
			[]waiter{{ends: 0}, {deadline: 90 * ms, ends: 0, want: ratelimit.ErrExceeded}},
			60 * ms, 100 * ms,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.New(ratelimit.Per(10, time.Second), 1, ratelimit.MaxWait(tt.maxWait))
				start := time.Now()
				arrive := func(i int, w waiter) {
					ctx, cancel := context.WithCancel(t.Context())
					if w.deadline > 0 {
						ctx, cancel = context.WithDeadline(t.Context(), start.Add(w.deadline))
					}
					defer cancel()
					if w.leaves > 0 {
						time.AfterFunc(w.leaves, cancel)
					}
					err := pass(ctx, l)
					if !errors.Is(err, w.want) {
						t.Errorf("waiter %d: error %v, want %v", i, err, w.want)
					}
					if refused := w.deadline > 0 || w.want == ratelimit.ErrExceeded; policy.Rejected(err) != (refused && w.want != nil) {
						t.Errorf("waiter %d: error %v, a refusal: %t", i, err, refused)
					}
					if late := w.want == context.DeadlineExceeded; late != errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("waiter %d: error %v, for its deadline: %t", i, err, late)
					}
					if got := time.Since(start); got != w.ends {
						t.Errorf("waiter %d: answered at +%v, want +%v", i, got, w.ends)
					}
				}
				for i, w := range tt.crowd {
					go arrive(i, w)
					synctest.Wait()
				}
				time.Sleep(tt.later)
				synctest.Wait()
				arrive(len(tt.crowd), waiter{ends: tt.ends})
				time.Sleep(100 * ms)
				if got := l.Stats().Available; got != 1 {
					t.Errorf("%v tokens at the end, want 1", got)
				}
			})
		})
	}
}

func TestWaitByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Per(1, time.Hour), 1)
		recorder := policytest.Record(l)
		start := time.Now()
		for i := range 3 {
			if err := l.Wait(t.Context()); err != nil || time.Since(start) != time.Duration(i)*time.Hour {
				t.Errorf("error %v at +%v, want a token at +%dh", err, time.Since(start), i)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := l.Wait(ctx)
		if !errors.Is(err, ratelimit.ErrExceeded) || !errors.Is(err, context.DeadlineExceeded) || !policy.Rejected(err) {
			t.Errorf("error %v, want a refusal for the deadline", err)
		}
		if wait, ok := policy.RetryAfter(err); !ok || wait != time.Hour {
			t.Errorf("retry after %v, want 1h", wait)
		}
		delayed := policy.RateLimitDelayed
		if got := recorder.Kinds(); !slices.Equal(got, []policy.Kind{delayed, delayed, policy.RateLimitRejected}) {
			t.Fatalf("events %v", got)
		}
		if e := recorder.Events()[0]; e.Delay != time.Hour || e.Name != "ratelimit" || e.Time.IsZero() {
			t.Errorf("event %+v lacks a field", e)
		}
	})
}

// Nobody jumps a line, not even onto a token that is there.
func TestNobodyJumpsTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := policytest.NewClock(time.Now())
		l := ratelimit.New(ratelimit.Per(10, time.Second), 1, ratelimit.Clock(clock))
		if !l.Allow() {
			t.Fatal("no token")
		}
		done := make(chan error)
		go func() { done <- l.Wait(t.Context()) }()
		synctest.Wait()
		if l.Allow() || pass(t.Context(), l) == nil {
			t.Error("a token went past the line")
		}
		clock.Advance(100 * ms)
		if err := <-done; err != nil {
			t.Error(err)
		}
		clock.Advance(100 * ms)
		if !l.Allow() || clock.Pending() != 0 {
			t.Errorf("no token after the line, or %d timers left", clock.Pending())
		}
	})
}

// However far the clock moves at once, each token is given out at its own instant.
func TestClockPassesSeveralTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := policytest.NewClock(time.Now())
		l := ratelimit.New(ratelimit.Per(10, time.Second), 1, ratelimit.Clock(clock))
		done := make(chan int, 5)
		for i := range 5 {
			go func() {
				if err := l.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				done <- i
			}()
			synctest.Wait()
		}
		clock.Advance(390 * ms)
		synctest.Wait()
		if got := len(done); got != 4 || clock.Pending() != 1 {
			t.Errorf("%d served after 390ms, %d timers, want 4 and 1", got, clock.Pending())
		}
		clock.Advance(10 * ms)
		synctest.Wait()
		if got := len(done); got != 5 || clock.Pending() != 0 {
			t.Errorf("%d served after 400ms, %d timers, want 5 and none", got, clock.Pending())
		}
		if err := pass(t.Context(), l); err == nil {
			t.Error("a token too many")
		}
	})
}

// A waiter whose ctx is done when its token comes costs nothing: the token is the next
// one's, at once, whether the waiter has noticed yet or not.
func TestTokenForOneWhoHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := policytest.NewClock(time.Now())
		l := ratelimit.New(ratelimit.Per(10, time.Second), 1, ratelimit.Clock(clock))
		l.Allow()
		ctx, cancel := context.WithCancel(t.Context())
		clock.AfterFunc(100*ms, cancel) // just before the limiter's own timer
		var errs [2]error
		for i, ctx := range []context.Context{ctx, t.Context()} {
			go func() { errs[i] = l.Wait(ctx) }()
			synctest.Wait()
		}
		clock.Advance(100 * ms)
		synctest.Wait()
		if !errors.Is(errs[0], context.Canceled) || errs[1] != nil {
			t.Errorf("errors %v, want the cancellation, and the token of the one who left", errs)
		}
		if got := l.Stats().Available; got != 0 || clock.Pending() != 0 {
			t.Errorf("%v tokens and %d timers left", got, clock.Pending())
		}
	})
}
