package policytest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
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
				t.Fatalf("error %v, want %s: policy.ContextError(ctx)", err, wanted(ctx))
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

// wanted says what the error of a call has to be whose ctx is done.
func wanted(ctx context.Context) string {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == cause {
		return fmt.Sprintf("one that Is %v", err)
	}
	return fmt.Sprintf("one that Is %v and Is its cause, %v", err, cause)
}

// Whether in the call, in a queue, or between attempts: the wait ends at the instant
// that the caller leaves, and nothing is begun any more. One leaves after the other,
// the last to come first, so that none is served at the very moment that it leaves.
func checkCancel(t *testing.T, fresh func() policy.Policy) {
	for _, step := range []Step{Block(), Fail(errCall)} {
		handler := fresh().Wrap(policy.Invoke)
		var guests []*guest
		for range crowd {
			ctx, leave := context.WithCancelCause(t.Context())
			guests = append(guests, come(ctx, leave, handler, step))
		}
		for _, g := range slices.Backward(guests) {
			synctest.Wait()
			served := g.returned.Load()
			g.leave(errGone)
			synctest.Wait()
			if !served && !g.endedWith(errGone) {
				t.Error(g.fault(wanted(g.ctx)))
				break
			}
		}
		for _, g := range guests {
			g.leave(errGone)
		}
		time.Sleep(24 * time.Hour)
		late(t, guests)
		admits(t, handler, "cancelled calls")
	}
}

// The same at the caller's deadline, or sooner.
func checkDeadline(t *testing.T, fresh func() policy.Policy) {
	for _, step := range []Step{Block(), Fail(errCall)} {
		handler := fresh().Wrap(policy.Invoke)
		var guests []*guest
		for i := range crowd {
			patience := time.Minute + time.Duration(crowd-i)*1_000_137 // not at the instant of another, or of the policy
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			guests = append(guests, come(ctx, nil, handler, step))
		}
		for _, g := range slices.Backward(guests) {
			<-g.ctx.Done()
			synctest.Wait()
			answered := g.returned.Load() && (g.err == nil || errors.Is(g.err, errCall) || policy.Rejected(g.err))
			if !answered && !g.endedWith(context.DeadlineExceeded) {
				t.Error(g.fault("the ctx's, the call's, a refusal, or none"))
				break
			}
		}
		time.Sleep(24 * time.Hour)
		late(t, guests)
		admits(t, handler, "expired calls")
	}
}

// A guest is a caller, and its Call.
type guest struct {
	*Scripted

	ctx      context.Context
	leave    context.CancelCauseFunc
	returned atomic.Bool  // with err
	late     atomic.Int64 // attempts that begin after its ctx has ended
	err      error
}

// come has a guest call handler.
func come(ctx context.Context, leave context.CancelCauseFunc, handler policy.Handler, step Step) *guest {
	g := &guest{Scripted: Script(step), ctx: ctx, leave: leave}
	go func() {
		_, g.err = handler(ctx, g)
		g.returned.Store(true)
	}()
	return g
}

func (g *guest) Invoke(ctx context.Context) (any, error) {
	if g.ctx.Err() != nil {
		g.late.Add(1)
	}
	return g.Scripted.Invoke(ctx)
}

func (g *guest) endedWith(cause error) bool {
	return g.returned.Load() && errors.Is(g.err, g.ctx.Err()) && errors.Is(g.err, cause)
}

// fault tells how the call of a guest, whose ctx has ended, did not end as wanted.
func (g *guest) fault(want string) string {
	if !g.returned.Load() {
		return "a call goes on after its ctx has ended: a wait has to end with it, as policy.Sleep does, or a select on ctx.Done()"
	}
	return fmt.Sprintf("a call whose ctx has ended returns the error %v, want %s", g.err, want)
}

// late fails the test if attempts began after their caller's end.
func late(t *testing.T, guests []*guest) {
	t.Helper()
	n := int64(0)
	for _, g := range guests {
		n += g.late.Load()
	}
	if n > 0 {
		t.Errorf("%d attempts begin after their caller's ctx has ended", n)
	}
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
