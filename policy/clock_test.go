package policy_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

func TestSystemClock(t *testing.T) {
	read := func(t *testing.T) {
		before := policy.SystemClock.Elapsed()
		if before < 0 {
			t.Errorf("Elapsed is %v, want no negative time", before)
		}
		if now := policy.SystemClock.Now(); time.Since(now).Abs() > time.Minute {
			t.Errorf("Now is %v, want the time of day", now)
		}
		if policy.SystemClock.Elapsed() < before {
			t.Error("Elapsed ran back")
		}
	}
	read(t)
	synctest.Test(t, func(t *testing.T) { // where no monotonic clock is
		read(t)
		before := policy.SystemClock.Elapsed()
		fired := false
		policy.SystemClock.AfterFunc(time.Hour, func() { fired = true })
		stopped := policy.SystemClock.AfterFunc(time.Minute, func() { t.Error("fired after Stop") })
		if !stopped.Stop() {
			t.Error("Stop of a pending timer is false")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if took := policy.SystemClock.Elapsed() - before; took != time.Hour || !fired {
			t.Errorf("after 1h, Elapsed moved by %v, and a timer has fired: %t", took, fired)
		}
		const century = 100 * 365 * 24 * time.Hour // beyond the day on which this process started
		time.Sleep(century)
		if took := policy.SystemClock.Elapsed() - before; took != time.Hour+century {
			t.Errorf("after a century and 1h, Elapsed moved by %v", took)
		}
	})
	if n := testing.AllocsPerRun(100, func() { policy.SystemClock.Elapsed() }); n != 0 {
		t.Errorf("%v allocations to read Elapsed, want none", n)
	}
}

func TestSleep(t *testing.T) {
	tests := []struct {
		name  string
		d     time.Duration
		leave time.Duration // when the caller leaves; negative: before
		took  time.Duration
		err   error
	}{
		{"to the end", time.Second, time.Minute, time.Second, nil},
		{"zero", 0, time.Minute, 0, nil},
		{"negative", math.MinInt64, time.Minute, 0, nil},
		{"caller leaves", time.Minute, time.Second, time.Second, errGone},
		{"caller leaves at the end", time.Second, time.Second, time.Second, errGone},
		{"caller has left", time.Second, -1, 0, errGone},
		{"caller has left and nothing to wait for", 0, -1, 0, errGone},
		{"for ever", math.MaxInt64, time.Hour, time.Hour, errGone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancelCause(t.Context())
				clock := policytest.NewClock(start)
				if tt.leave < 0 {
					leave(errGone)
				} else {
					clock.AfterFunc(tt.leave, func() { leave(errGone) })
				}
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					err = policy.Sleep(ctx, clock, tt.d)
				}()
				synctest.Wait()
				if tt.took > 0 {
					clock.Advance(tt.took - 1)
					synctest.Wait()
					select {
					case <-done:
						t.Error("returned early")
					default:
					}
					clock.Advance(1)
				}
				<-done
				if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
					t.Errorf("error %v, want %v", err, tt.err)
				}
				clock.Advance(time.Minute)
				if clock.Pending() > 0 {
					t.Error("a timer is left")
				}
				leave(nil)
			})
		})
	}
}

func TestOutlasts(t *testing.T) {
	clock := policytest.NewClock(start)
	ctx, cancel := context.WithDeadline(t.Context(), start.Add(time.Minute))
	defer cancel()
	tests := []struct {
		name string
		ctx  context.Context
		pass time.Duration
		d    time.Duration
		want bool
	}{
		{"no deadline", t.Context(), 0, math.MaxInt64, false},
		{"shorter", ctx, 0, time.Minute - 1, false},
		{"equal", ctx, 0, time.Minute, true},
		{"longer", ctx, 0, math.MaxInt64, true},
		{"less is left", ctx, time.Second, time.Minute - 1, true},
		{"no wait", ctx, 0, 0, false},
		{"past the deadline", ctx, time.Minute, 0, true},
	}
	for _, tt := range tests {
		clock.Advance(tt.pass)
		if got := policy.Outlasts(tt.ctx, clock, tt.d); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}
