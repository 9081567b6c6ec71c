package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/timeout"
)

// sleeper is a call that owns its value and ignores its ctx.
func sleeper(d time.Duration, value any) *owner {
	return &owner{value: value, invoke: func(context.Context) { time.Sleep(d) }}
}

// BEHAVIOUR 48, with Abandon.
func TestAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := timeout.New(50*ms, timeout.Abandon())
		call, start := sleeper(400*ms, "late"), time.Now()
		value, err := p.Wrap(policy.Invoke)(t.Context(), call)
		exceeded, ok := err.(*timeout.ExceededError)
		if value != nil || !ok || !errors.Is(err, timeout.ErrExceeded) || exceeded.Err != nil {
			t.Fatalf("got %v, %v, want an ExceededError", value, err)
		}
		if took := time.Since(start); took != 50*ms {
			t.Errorf("took %v, want the limit", took)
		}
		order := make(chan string, 3)
		after := func(name string) func() {
			return func() { order <- fmt.Sprintf("%s %v %d", name, call.discarded, p.Stats().Abandoned) }
		}
		if !policy.AfterEnd(err, after("first")) || !policy.AfterEnd(fmt.Errorf("wrapped: %w", err), func() { panic(errCall) }) ||
			!policy.AfterEnd(err, runtime.Goexit) || !policy.AfterEnd(err, after("last")) {
			t.Error("nothing runs, says AfterEnd")
		}
		time.Sleep(349 * ms)
		if n := p.Stats().Abandoned; n != 1 || !exceeded.Running() || len(order) != 0 {
			t.Errorf("%d abandoned, running %t, %d funcs run", n, exceeded.Running(), len(order))
		}
		time.Sleep(ms)
		synctest.Wait()
		if n := p.Stats().Abandoned; n != 0 || exceeded.Running() {
			t.Errorf("%d abandoned, running %t after the end", n, exceeded.Running())
		}
		for _, want := range []string{"first [late] 0", "last [late] 0"} {
			if got := <-order; got != want {
				t.Errorf("ended %q, want %q", got, want)
			}
		}
		if policy.AfterEnd(err, after("too late")) {
			t.Error("something still runs, says AfterEnd")
		}
		exceeded.AfterEnd(after("at once"))
		if len(order) != 1 {
			t.Error("AfterEnd did not run its func at once")
		}
	})
}

// What the caller is told in time is as without Abandon.
func TestAbandonInTime(t *testing.T) {
	for name, call := range map[string]policy.CallFunc{
		"value":        after(10*ms, "ok", nil),
		"error":        after(10*ms, "v", errCall),
		"heeds it":     waiting,
		"at the limit": after(50*ms, "ok", nil),
	} {
		bubbled(t, name, func(t *testing.T) {
			p := timeout.New(50*ms, timeout.Abandon())
			value, err := p.Wrap(policy.Invoke)(t.Context(), call)
			switch name {
			case "value":
				if value != "ok" || err != nil {
					t.Errorf("got %v, %v", value, err)
				}
			case "error":
				if value != "v" || err != errCall {
					t.Errorf("got %v, %v", value, err)
				}
			case "heeds it":
				checkExceededOr(t, err, false)
			default: // either is right
				checkExceededOr(t, err, true)
			}
			synctest.Wait()
			if n := p.Stats().Abandoned; n != 0 {
				t.Errorf("%d abandoned", n)
			}
		})
	}
}

func checkExceededOr(t *testing.T, err error, nothing bool) {
	t.Helper()
	if !errors.Is(err, timeout.ErrExceeded) && (err != nil || !nothing) {
		t.Errorf("error %v", err)
	}
}

// A caller that leaves is answered at once, with his own error.
func TestAbandonCallerLeaves(t *testing.T) {
	cause := errors.New("the user left")
	tests := []struct {
		name  string
		limit time.Duration
		leave func(ctx context.Context) (context.Context, context.CancelFunc)
		errs  []error
	}{
		{"cancel", 50 * ms, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(20*ms, func() { cancel(cause) })
			return ctx, func() {}
		}, []error{context.Canceled, cause}},
		{"deadline", 50 * ms, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, 20*ms, cause)
		}, []error{context.DeadlineExceeded, cause}},
		{"deadline, no limit", 0, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 20*ms)
		}, []error{context.DeadlineExceeded}},
	}
	for _, tt := range tests {
		bubbled(t, tt.name, func(t *testing.T) {
			p := timeout.New(time.Hour, timeout.Abandon(), limit(tt.limit))
			recorder := policytest.Record(p)
			ctx, cancel := tt.leave(t.Context())
			defer cancel()
			call, start := sleeper(400*ms, "late"), time.Now()
			value, err := p.Wrap(policy.Invoke)(ctx, call)
			if took := time.Since(start); value != nil || err == nil || took != 20*ms {
				t.Fatalf("got %v, %v in %v", value, err, took)
			}
			for _, want := range tt.errs {
				if !errors.Is(err, want) {
					t.Errorf("error %v, want one that Is %v", err, want)
				}
			}
			checkExceeded(t, err, "")
			if !strings.HasPrefix(err.Error(), `timeout "timeout": call left running: context `) {
				t.Errorf("message %q", err)
			}
			if timedOut := errors.Is(err, context.DeadlineExceeded); err.(interface{ Timeout() bool }).Timeout() != timedOut {
				t.Errorf("Timeout() %t", !timedOut)
			}
			ended := false
			if n := p.Stats().Abandoned; n != 1 || !policy.AfterEnd(err, func() { ended = true }) {
				t.Errorf("%d abandoned", n)
			}
			time.Sleep(380 * ms)
			synctest.Wait()
			if n := p.Stats().Abandoned; n != 0 || !ended || fmt.Sprint(call.discarded) != "[late]" {
				t.Errorf("%d abandoned, ended %t, discarded %v", n, ended, call.discarded)
			}
			if policy.AfterEnd(err, func() {}) {
				t.Error("something still runs, says AfterEnd")
			}
			if kinds := fmt.Sprint(recorder.Kinds()); kinds != "[timeout.abandoned]" {
				t.Errorf("told %v", kinds)
			}
		})
	}
}

// BEHAVIOUR 53: in time, the caller panics with that value, or ends as its call did.
func TestAbandonPanicInTime(t *testing.T) {
	for _, goexit := range []bool{false, true} {
		bubbled(t, fmt.Sprintf("Goexit %t", goexit), func(t *testing.T) {
			handler := timeout.New(10*ms, timeout.Abandon()).Wrap(policy.Invoke)
			ended := make(chan any)
			go func() {
				defer close(ended)
				defer func() {
					if got := recover(); got != nil {
						ended <- got
					}
				}()
				handler(t.Context(), policy.CallFunc(func(context.Context) (any, error) {
					time.Sleep(5 * ms)
					if goexit {
						runtime.Goexit()
					}
					panic(errCall)
				}))
				t.Error("the handler returned")
			}()
			if got := <-ended; (got == errCall) == goexit {
				t.Errorf("recovered %v", got)
			}
			<-ended
		})
	}
}

// BEHAVIOUR 53: too late, nothing of it reaches anybody but observers.
func TestAbandonEndsBadly(t *testing.T) {
	boom := policy.ObserverFunc(func(_ context.Context, e policy.Event) {
		if e.Kind == policy.CallPanicked {
			panic("observer")
		}
	})
	for name, end := range map[string]func(){
		"panic":     func() { panic(errCall) },
		"panic int": func() { panic(1) },
		"panic nil": func() { panic(nil) },
		"Goexit":    runtime.Goexit,
	} {
		bubbled(t, name, func(t *testing.T) {
			p := timeout.New(10*ms, timeout.Abandon())
			p.Subscribe(boom)
			recorder := policytest.Record(p)
			_, err := p.Wrap(policy.Invoke)(t.Context(), policy.CallFunc(func(context.Context) (any, error) {
				time.Sleep(20 * ms)
				end()
				return nil, nil
			}))
			ended := false
			policy.AfterEnd(err, func() { ended = true })
			time.Sleep(10 * ms)
			synctest.Wait()
			want := 3
			if name == "Goexit" {
				want = 2
			}
			if n := p.Stats().Abandoned; n != 0 || !ended || len(recorder.Kinds()) != want {
				t.Errorf("%d abandoned, ended %t, told %v", n, ended, recorder.Kinds())
			}
		})
	}
}

// A Discard that panics does not keep the call from ending.
func TestAbandonDiscardPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := timeout.New(10*ms, timeout.Abandon())
		call := &panickingDiscard{sleeper(20*ms, 1)}
		_, err := p.Wrap(policy.Invoke)(t.Context(), call)
		ended := false
		policy.AfterEnd(err, func() { ended = true })
		time.Sleep(10 * ms)
		synctest.Wait()
		if p.Stats().Abandoned != 0 || !ended {
			t.Error("the call never ended")
		}
	})
}

type panickingDiscard struct{ *owner }

func (d *panickingDiscard) Discard(any) { panic("discard") }

// Values that arrive at the very moment of the limit are returned or discarded, and
// AfterEnd's funcs run once.
func TestAbandonAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := timeout.New(50*ms, timeout.Abandon())
		handler := p.Wrap(policy.Invoke)
		var returned, abandoned, ended atomic.Int64
		call := sleeper(50*ms, "v")
		const calls = 1000
		for range calls {
			go func() {
				value, err := handler(t.Context(), call)
				if value != nil {
					returned.Add(1)
				}
				if err != nil {
					abandoned.Add(1)
					if !policy.AfterEnd(err, func() { ended.Add(1) }) {
						ended.Add(1)
					}
				}
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(call.discarded); returned.Load()+int64(n) != calls || ended.Load() != abandoned.Load() || int64(n) != abandoned.Load() {
			t.Errorf("%d returned, %d discarded, %d abandoned, %d ended", returned.Load(), n, abandoned.Load(), ended.Load())
		}
		if n := p.Stats().Abandoned; n != 0 {
			t.Errorf("%d abandoned", n)
		}
	})
}
