package policytest_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policytest"
)

var start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// Each step is a line of what a clock did: "1s a" where timer a fired at +1s.
func TestAdvanceFiresInOrder(t *testing.T) {
	tests := []struct {
		name string
		play func(c *policytest.Clock, timer func(d time.Duration, name string))
		want []string
	}{
		{"by due time", func(c *policytest.Clock, timer func(time.Duration, string)) {
			timer(3*time.Second, "c")
			timer(time.Second, "a")
			timer(2*time.Second, "b")
			c.Advance(time.Minute)
		}, []string{"1s a", "2s b", "3s c"}},
		{"then by creation", func(c *policytest.Clock, timer func(time.Duration, string)) {
			for _, name := range []string{"a", "b", "c"} {
				timer(time.Second, name)
			}
			c.Advance(time.Second)
		}, []string{"1s a", "1s b", "1s c"}},
		{"only what is due", func(c *policytest.Clock, timer func(time.Duration, string)) {
			timer(time.Second, "a")
			timer(time.Second+1, "b")
			c.Advance(0)
			c.Advance(time.Second - 1)
			c.Advance(1)
		}, []string{"1s a"}},
		{"made by one that fires", func(c *policytest.Clock, timer func(time.Duration, string)) {
			timer(4*time.Second, "d")
			c.AfterFunc(time.Second, func() {
				timer(time.Second, "b")
				timer(10*time.Second, "never")
			})
			c.Advance(5 * time.Second)
		}, []string{"2s b", "4s d"}},
		{"Advance by one that fires", func(c *policytest.Clock, timer func(time.Duration, string)) {
			timer(2*time.Second, "b")
			timer(9*time.Second, "d")
			c.AfterFunc(time.Second, func() {
				timer(0, "at once, so not among these")
				c.Advance(5 * time.Second)
				timer(time.Second, "c")
			})
			c.Advance(4 * time.Second) // the one within has passed it, to +6s
			timer(2*time.Second, "c too")
			c.Advance(2 * time.Second)
		}, []string{"2s b", "7s c", "8s c too"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := policytest.NewClock(start)
			var got []string
			tt.play(c, func(d time.Duration, name string) {
				if d <= 0 {
					c.AfterFunc(d, func() {})
					return
				}
				c.AfterFunc(d, func() {
					if wall := c.Now().Sub(start); wall != c.Elapsed() {
						t.Errorf("Now is at %v and Elapsed at %v", wall, c.Elapsed())
					}
					got = append(got, fmt.Sprint(c.Elapsed(), " ", name))
				})
			})
			if !slices.Equal(got, tt.want) {
				t.Errorf("fired %q, want %q", got, tt.want)
			}
		})
	}
}

func TestStop(t *testing.T) {
	c := policytest.NewClock(time.Time{})
	if !c.Now().IsZero() {
		t.Errorf("Now is %v, want the zero time", c.Now())
	}
	fired := 0
	fire := func() { fired++ }
	first, second, third := c.AfterFunc(1, fire), c.AfterFunc(1, fire), c.AfterFunc(1, fire)
	if c.Pending() != 3 {
		t.Errorf("%d pending, want 3", c.Pending())
	}
	if !second.Stop() || second.Stop() {
		t.Error("Stop is true once, while the timer is pending")
	}
	c.AfterFunc(1, func() {
		if first.Stop() {
			t.Error("Stop is true for a timer that has fired")
		}
	})
	c.Advance(1)
	if fired != 2 || third.Stop() || c.Pending() != 0 {
		t.Errorf("%d fired and %d pending, want 2 and none", fired, c.Pending())
	}
}

// A timer that is due at once must not run on the caller's goroutine: the caller may
// hold what it needs.
func TestTimerDueAtOnce(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Second, math.MinInt64} {
		synctest.Test(t, func(t *testing.T) {
			c := policytest.NewClock(start)
			var mu sync.Mutex
			fired := false
			mu.Lock()
			timer := c.AfterFunc(d, func() {
				mu.Lock()
				defer mu.Unlock()
				fired = true
			})
			mu.Unlock()
			synctest.Wait()
			if !fired || timer.Stop() || c.Pending() != 0 {
				t.Errorf("AfterFunc(%v): fired %t, %d pending", d, fired, c.Pending())
			}
		})
	}
}

func TestSetStepsNowOnly(t *testing.T) {
	c := policytest.NewClock(start)
	fired := false
	c.AfterFunc(time.Minute, func() { fired = true })
	c.Advance(time.Second)
	for _, step := range []time.Duration{time.Hour, -time.Hour, 0} {
		c.Set(start.Add(step))
		c.Advance(time.Second)
		if got, want := c.Now(), start.Add(step+time.Second); !got.Equal(want) {
			t.Errorf("Now is %v, want %v", got, want)
		}
	}
	if c.Elapsed() != 4*time.Second || fired {
		t.Errorf("Elapsed is %v and the timer has fired: %t, want 4s and false", c.Elapsed(), fired)
	}
}

func TestDurationsSaturate(t *testing.T) {
	c := policytest.NewClock(start)
	c.Advance(time.Hour)
	fired := false
	c.AfterFunc(math.MaxInt64, func() { fired = true })
	c.Advance(math.MaxInt64 - time.Hour - 1)
	if fired {
		t.Error("fired too early")
	}
	c.Advance(math.MaxInt64)
	c.Advance(math.MaxInt64)
	if !fired || c.Elapsed() != math.MaxInt64 {
		t.Errorf("fired %t, Elapsed %v, want the largest Duration", fired, c.Elapsed())
	}
}

// The reading of the real clock that time.Now brings must not take part.
func TestStartOfTheRealClock(t *testing.T) {
	now := time.Now()
	c := policytest.NewClock(now)
	c.Set(now.Add(time.Hour))
	if got := c.Now().Sub(now); got != time.Hour {
		t.Errorf("Now is %v after the start, want 1h", got)
	}
	if c.Now() != c.Now().Round(0) {
		t.Error("Now has a monotonic reading")
	}
}

func TestClockPanics(t *testing.T) {
	c := policytest.NewClock(start)
	tests := []struct {
		want string
		f    func()
	}{
		{"policytest: Advance(-1ns): must be at least 0", func() { c.Advance(-1) }},
		{"policytest: AfterFunc(nil): must not be nil", func() { c.AfterFunc(1, nil) }},
		{"policytest: After(-1s): must be at least 0", func() { policytest.Return(1).After(-time.Second) }},
		{"policytest: Script(): must have at least one step", func() { policytest.Script() }},
	}
	for _, tt := range tests {
		func() {
			defer func() {
				if got := recover(); got != tt.want {
					t.Errorf("panic %v, want %q", got, tt.want)
				}
			}()
			tt.f()
		}()
	}

	c.AfterFunc(time.Second, func() { panic("own") })
	func() {
		defer func() {
			if got := recover(); got != "own" {
				t.Errorf("recovered %v, want the timer's panic", got)
			}
		}()
		c.Advance(time.Minute)
	}()
	if c.Elapsed() != time.Second || c.Pending() != 0 {
		t.Errorf("after a timer's panic at 1s, the clock stands at %v with %d pending", c.Elapsed(), c.Pending())
	}
}

func TestClockWithTimeout(t *testing.T) {
	c := policytest.NewClock(start)
	ctx, cancel := c.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.Advance(time.Minute - 1)
	if ctx.Err() != nil {
		t.Errorf("ended early: %v", ctx.Err())
	}
	c.Advance(1)
	if ctx.Err() != context.DeadlineExceeded {
		t.Errorf("error %v, want %v", ctx.Err(), context.DeadlineExceeded)
	}
}

func TestClockFromManyGoroutines(t *testing.T) {
	c := policytest.NewClock(start)
	var fired, stopped atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 50 {
				timer := c.AfterFunc(time.Duration(1+fired.Load()%7), func() { fired.Add(1) })
				c.Advance(1)
				if timer.Stop() {
					stopped.Add(1)
				}
				c.Set(start)
				c.Now()
			}
		})
	}
	all.Wait()
	if fired.Load()+stopped.Load() != 2500 || c.Pending() != 0 {
		t.Errorf("%d fired, %d stopped, %d pending, want 2500 in all and none", fired.Load(), stopped.Load(), c.Pending())
	}
}
