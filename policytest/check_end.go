package policytest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// crowd is how many calls come at once, or end badly one after the other.
const crowd = 100

// A caller that has given up before: nothing is run, nothing is taken, and the error
// says why.
func checkDone(t *testing.T, fresh func() policy.Policy) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	left, leave := context.WithCancelCause(t.Context())
	leave(errGone)
	expired, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	late, cancel := context.WithDeadlineCause(t.Context(), time.Now(), errGone)
	defer cancel()

	for _, ctx := range []context.Context{canceled, left, expired, late} {
		handler := fresh().Wrap(policy.Invoke)
		call := Script(Return(nil))
		for range crowd {
			_, err := handler(ctx, call)
			if !errors.Is(err, ctx.Err()) || !errors.Is(err, context.Cause(ctx)) {
				t.Fatalf("error %v, want one that Is %v and Is %v", err, ctx.Err(), context.Cause(ctx))
			}
		}
		if call.Calls() > 0 {
			t.Errorf("the call was run although its ctx was done: %v", context.Cause(ctx))
		}
		if _, err := handler(t.Context(), call); call.Calls() == 0 {
			t.Errorf("calls with a done ctx took something: the next is not run, but gets %v", err)
		}
	}
}

// Whether in the call, in a queue, or between attempts: the wait ends at the instant
// that the caller leaves, and nothing is begun any more.
func checkCancel(t *testing.T, fresh func() policy.Policy) {
	for _, step := range []Step{Block(), Fail(errCall)} {
		ctx, leave := context.WithCancelCause(t.Context())
		handler, call := fresh().Wrap(policy.Invoke), &punctual{Call: Script(step), caller: ctx}
		waiting := come(t, "one that Is context.Canceled and Is the cause", func() (error, bool) {
			_, err := handler(ctx, call)
			return err, ctx.Err() == nil || errors.Is(err, context.Canceled) && errors.Is(err, errGone)
		})
		synctest.Wait()
		leave(errGone)
		synctest.Wait()
		if n := waiting.Load(); n > 0 {
			t.Errorf("%d of %d calls go on after their caller left", n, crowd)
		}
		time.Sleep(24 * time.Hour)
		if n := call.late.Load(); n > 0 {
			t.Errorf("%d attempts begin after the caller left", n)
		}
		admits(t, handler, "cancelled calls")
	}
}

// The same at the caller's deadline, or sooner.
func checkDeadline(t *testing.T, fresh func() policy.Policy) {
	for _, step := range []Step{Block(), Fail(errCall)} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		handler, call := fresh().Wrap(policy.Invoke), &punctual{Call: Script(step), caller: ctx}
		waiting := come(t, "the ctx's, the call's, a refusal, or none", func() (error, bool) {
			_, err := handler(ctx, call)
			return err, err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errCall) || policy.Rejected(err)
		})
		<-ctx.Done()
		synctest.Wait()
		if n := waiting.Load(); n > 0 {
			t.Errorf("%d of %d calls go on after their deadline", n, crowd)
		}
		time.Sleep(24 * time.Hour)
		if n := call.late.Load(); n > 0 {
			t.Errorf("%d attempts begin after the deadline", n)
		}
		admits(t, handler, "expired calls")
	}
}

// punctual counts the attempts that begin after the caller's ctx has ended.
type punctual struct {
	policy.Call

	caller context.Context
	late   atomic.Int64
}

func (p *punctual) Invoke(ctx context.Context) (any, error) {
	if p.caller.Err() != nil {
		p.late.Add(1)
	}
	return p.Call.Invoke(ctx)
}

// come runs f on a crowd of goroutines and counts those that have not returned. It
// fails the test, once, where f's error is not ok.
func come(t *testing.T, want string, f func() (err error, ok bool)) (waiting *atomic.Int64) {
	t.Helper()
	waiting = new(atomic.Int64)
	waiting.Add(crowd)
	var told sync.Once
	for range crowd {
		go func() {
			defer waiting.Add(-1)
			if err, ok := f(); !ok {
				told.Do(func() { t.Errorf("error %v, want %s", err, want) })
			}
		}()
	}
	return waiting
}

// A panic reaches the caller with its own value, and the policy lives on.
func checkPanic(t *testing.T, fresh func() policy.Policy) {
	endBadly(t, fresh, "panics", func(handler policy.Handler) {
		value := new(int)
		call := Script(Panic(value))
		got := recovered(func() { handler(t.Context(), call) })
		switch calls := call.Calls(); {
		case calls == 0 && got != nil:
			t.Errorf("the policy panics: %v", got)
		case calls > 0 && got == nil:
			t.Error("the panic was swallowed")
		case calls > 0 && got != any(value):
			t.Errorf("recovered %v, want the call's own panic value", got)
		case calls > 1:
			t.Errorf("a call that panics was run %d times, want once", calls)
		}
	})
}

// Goexit, as of a FailNow in a call, ends the caller's goroutine, and the policy
// lives on.
func checkGoexit(t *testing.T, fresh func() policy.Policy) {
	endBadly(t, fresh, "calls that end their goroutine", func(handler policy.Handler) {
		var calls atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			handler(t.Context(), policy.CallFunc(func(context.Context) (any, error) {
				calls.Add(1)
				runtime.Goexit()
				return nil, nil
			}))
			if calls.Load() > 0 {
				t.Error("the handler returned although the call has ended its goroutine")
			}
		}()
		<-ended
	})
}

// endBadly ends a crowd of calls in a row, and then some more as time passes, as the
// trials of a circuit are.
func endBadly(t *testing.T, fresh func() policy.Policy, what string, call func(handler policy.Handler)) {
	t.Helper()
	handler := fresh().Wrap(policy.Invoke)
	for range crowd {
		if call(handler); t.Failed() {
			return // it would fail a hundred times
		}
	}
	for wait := time.Second; wait < 24*time.Hour; wait *= 2 {
		time.Sleep(wait)
		call(handler)
	}
	admits(t, handler, what)
}
