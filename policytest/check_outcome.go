package policytest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

func checkIdle(t *testing.T, fresh func() policy.Policy) {
	p := fresh()
	if p == nil {
		t.Fatal("make returned nil")
	}
	handler := p.Wrap(policy.Invoke)
	if handler == nil {
		t.Fatal("Wrap returned nil")
	}
	handler(t.Context(), Script(Return(nil)))
}

// A success is run once, by way of the next handler, and its value is not touched.
func checkSuccess(t *testing.T, fresh func() policy.Policy) {
	for _, want := range []any{new(int), nil} {
		var passed atomic.Int64
		handler := fresh().Wrap(func(ctx context.Context, call policy.Call) (any, error) {
			passed.Add(1)
			return call.Invoke(ctx)
		})
		if passed.Load() > 0 {
			t.Error("Wrap called the next handler: it is for every call, not for composition")
		}
		call := Script(Return(want))
		got, err := handler(t.Context(), call)
		if got != want || err != nil {
			t.Errorf("got %v, %v, want the call's own %v and no error", got, err, want)
		}
		if call.Calls() != 1 {
			t.Errorf("a call that succeeds was run %d times, want once", call.Calls())
		}
		if passed.Load() == 0 {
			t.Error("the next handler was passed by")
		}
	}
}

// While one call runs, another does not wait for a lock. It comes early: the waits of
// the other checks would never end, since a bubble's time stands still meanwhile.
func checkLock(t *testing.T, fresh func() policy.Policy) {
	handler := fresh().Wrap(policy.Invoke)
	begun, end := make(chan bool, 2), make(chan struct{})
	call := policy.CallFunc(func(context.Context) (any, error) {
		begun <- true
		<-end
		return nil, nil
	})
	go handler(t.Context(), call)
	<-begun
	go handler(t.Context(), call)

	self, locked := bubbleName(), ""
	for range 100 {
		runtime.Gosched()
		others := stacks(self)[1:]
		waits := func(state string) func(stack string) bool {
			return func(stack string) bool { return strings.Contains(header(stack), state) }
		}
		if locked = ""; slices.ContainsFunc(others, waits("Mutex")) {
			locked = digest(others)
		} else if !slices.ContainsFunc(others, func(stack string) bool { return !waits("(durable)")(stack) }) {
			break // the second call runs, queues, or has ended
		}
	}
	if locked != "" {
		t.Errorf("a call waits for a lock while another runs: unlock before next\n%s", locked)
	}
	close(end)
	time.Sleep(24 * time.Hour) // a call that sleeps is for the other checks
}

// The policy may answer an error with a value. If it does not, the error is there.
func checkError(t *testing.T, fresh func() policy.Policy) {
	call := Script(Fail(errCall))
	if _, err := fresh().Wrap(policy.Invoke)(t.Context(), call); err != nil && !errors.Is(err, errCall) {
		t.Errorf("error %v, want one that Is the call's, or none", err)
	}
	if call.Calls() == 0 {
		t.Error("the call was not run")
	}
}

// A refusal further in, and what the call's Judge calls final, is not tried again.
func checkFinal(t *testing.T, fresh func() policy.Policy) {
	call := Script(Fail(refusal{errRefuse}))
	_, err := fresh().Wrap(policy.Invoke)(t.Context(), call)
	if call.Calls() != 1 {
		t.Errorf("a refused call was tried %d times, want once", call.Calls())
	}
	if err != nil && (!errors.Is(err, errRefuse) || !policy.Rejected(err)) {
		t.Errorf("error %v, want one that is the refusal, or none", err)
	}

	final := &owner{do: func(context.Context) error { return errCall }}
	_, err = fresh().Wrap(policy.Invoke)(t.Context(), final)
	if n := len(final.all()); n != 1 {
		t.Errorf("a call whose Judge says no was tried %d times, want once", n)
	}
	if err != nil && !errors.Is(err, errCall) {
		t.Errorf("error %v, want one that Is the call's, or none", err)
	}
}

// Every attempt is of the Call that the handler was given: a wrapper would hide its
// Keeper and Judge.
func checkCall(t *testing.T, fresh func() policy.Policy) {
	for _, err := range []error{nil, errCall} {
		want := &owner{do: func(context.Context) error { return err }, again: true}
		handler := fresh().Wrap(func(ctx context.Context, call policy.Call) (any, error) {
			if call != policy.Call(want) {
				t.Errorf("the next handler was given a %T, want the Call itself", call)
			}
			return want.Invoke(ctx)
		})
		handler(t.Context(), want)
	}
}

// The call sees the caller's values and end through the ctx that it is given.
func checkContext(t *testing.T, fresh func() policy.Policy) {
	type key struct{}
	values := context.WithValue(t.Context(), key{}, "value")
	timed, stop := context.WithTimeout(values, time.Hour)
	defer stop()
	end, _ := timed.Deadline()
	ctx, leave := context.WithCancelCause(timed)

	call := policy.CallFunc(func(ctx context.Context) (any, error) {
		if err := ctx.Err(); err != nil {
			t.Errorf("the call begins with a ctx that is done: %v", err)
		}
		if ctx.Value(key{}) != "value" {
			t.Error("the call's ctx has lost the caller's values")
		}
		if d, ok := ctx.Deadline(); !ok || d.After(end) {
			t.Errorf("the call's deadline is %v, want the caller's, %v, or sooner", d, end)
		}
		leave(errGone)
		select {
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errGone) {
				t.Errorf("the call's ctx ends because of %v, want the caller's %v", context.Cause(ctx), errGone)
			}
		case <-time.After(time.Nanosecond):
			t.Error("the call's ctx does not end with the caller's")
		}
		return nil, policy.ContextError(ctx)
	})
	fresh().Wrap(policy.Invoke)(ctx, call)
}

// Each handler goes its own way, and the policy serves both.
func checkPipelines(t *testing.T, fresh func() policy.Policy) {
	p := fresh()
	var passed [2]atomic.Int64
	var handlers [2]policy.Handler
	for i := range handlers {
		handlers[i] = p.Wrap(func(ctx context.Context, call policy.Call) (any, error) {
			passed[i].Add(1)
			return call.Invoke(ctx)
		})
	}
	for i, handler := range handlers {
		before := passed[1-i].Load()
		admits(t, handler, "a second Wrap")
		if passed[i].Load() == 0 || passed[1-i].Load() != before {
			t.Errorf("of two handlers, number %d called the other's next", i+1)
		}
	}
}
