package policytest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

var errCall = errors.New("call failed")

func TestScriptAnswersStepByStep(t *testing.T) {
	call := policytest.Script(policytest.Fail(errCall), policytest.Return(1), policytest.Return(2))
	for i, want := range []any{nil, 1, 2, 2, 2} {
		value, err := call.Invoke(t.Context())
		if value != want || (err == errCall) != (i == 0) {
			t.Errorf("call %d: got %v, %v", i+1, value, err)
		}
	}
	if call.Calls() != 5 {
		t.Errorf("%d calls, want 5", call.Calls())
	}
}

func TestScriptPanics(t *testing.T) {
	call := policytest.Script(policytest.Panic(errCall))
	defer func() {
		if got := recover(); got != errCall || call.Calls() != 1 {
			t.Errorf("recovered %v after %d calls, want the step's value after one", got, call.Calls())
		}
	}()
	call.Invoke(t.Context())
}

// In a bubble a step sleeps; on a clock it moves the clock. Only Block looks at ctx.
func TestStepsTakeTime(t *testing.T) {
	tests := []struct {
		name string
		step policytest.Step
		took time.Duration // of a call whose ctx ends after 10s
		err  error
	}{
		{"Return", policytest.Return("v"), 0, nil},
		{"Return after", policytest.Return("v").After(time.Minute), time.Minute, nil},
		{"Fail after", policytest.Fail(errCall).After(time.Second), time.Second, errCall},
		{"Block", policytest.Block(), 10 * time.Second, context.DeadlineExceeded},
		{"Block after", policytest.Block().After(time.Second), 10 * time.Second, context.DeadlineExceeded},
		{"Block after the end", policytest.Block().After(time.Hour), time.Hour, context.DeadlineExceeded},
		{"the last After counts", policytest.Return("v").After(time.Hour).After(time.Second), time.Second, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name+" in a bubble", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				begun := time.Now()
				_, err := policytest.Script(tt.step).Invoke(ctx)
				if took := time.Since(begun); took != tt.took || err != tt.err {
					t.Errorf("took %v, %v, want %v, %v", took, err, tt.took, tt.err)
				}
			})
		})
		t.Run(tt.name+" on a clock", func(t *testing.T) {
			c := policytest.NewClock(start)
			ctx, cancel := c.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := policytest.Script(tt.step).On(c).Invoke(ctx)
			if c.Elapsed() != tt.took || err != tt.err {
				t.Errorf("took %v, %v, want %v, %v", c.Elapsed(), err, tt.took, tt.err)
			}
		})
	}
}

// Block ends with the ctx, whatever ends it, also where the clock has nothing to do
// with that, and says why.
func TestBlockTellsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := policytest.NewClock(start)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errCall) })
		_, err := policytest.Script(policytest.Block()).On(c).Invoke(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errCall) {
			t.Errorf("error %v, want one that Is %v and Is the cause", err, context.Canceled)
		}
	})
}

func TestScriptFromManyGoroutines(t *testing.T) {
	call := policytest.Script(policytest.Return(0), policytest.Return(1), policytest.Return(2))
	var mu sync.Mutex
	var all sync.WaitGroup
	got := map[any]int{}
	for range 100 {
		all.Go(func() {
			value, _ := call.Invoke(t.Context())
			mu.Lock()
			defer mu.Unlock()
			got[value]++
		})
	}
	all.Wait()
	if got[0] != 1 || got[1] != 1 || got[2] != 98 || call.Calls() != 100 {
		t.Errorf("answers %v of %d calls, want each step once and the last for the rest", got, call.Calls())
	}
}

func TestRecord(t *testing.T) {
	var one, two policy.Events
	rec := policytest.Record(&one, &two)
	one.Emit(t.Context(), policy.Event{Kind: "a", Name: "one"})
	two.Emit(t.Context(), policy.Event{Kind: "b", Name: "two"})
	one.Emit(t.Context(), policy.Event{Kind: "c", Name: "one"})

	if kinds := rec.Kinds(); len(kinds) != 3 || kinds[0] != "a" || kinds[1] != "b" || kinds[2] != "c" {
		t.Errorf("kinds %v, want a, b, c", kinds)
	}
	events := rec.Events()
	events[0].Name = "changed"
	if rec.Events()[0].Name != "one" {
		t.Error("Events is not a copy")
	}
	if late := policytest.Record(&one); len(late.Events()) != 0 {
		t.Error("a recorder has events from before it was there")
	}

	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			two.Emit(t.Context(), policy.Event{Kind: "d"})
			rec.Kinds()
		})
	}
	all.Wait()
	if n := len(rec.Events()); n != 53 {
		t.Errorf("%d events, want 53", n)
	}
}
