package policytest

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// An owner is a Call whose values own something. It keeps the books of them, as the
// Keeper and Judge that it is.
type owner struct {
	do    func(ctx context.Context) error // how the call ends; it has a value in any case
	bad   bool                            // its values are failures
	again bool                            // and may be tried again
	keeps bool                            // what is handed to Keep

	mu     sync.Mutex // guards bodies, and the fields of each
	bodies []*body
}

// A body is a value of an owner.
type body struct {
	ctx                 context.Context // the call's
	releases            []func()
	returned, discarded int
}

func (o *owner) Invoke(ctx context.Context) (any, error) {
	err := o.do(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	b := &body{ctx: ctx}
	o.bodies = append(o.bodies, b)
	return b, err
}

func (o *owner) Outcome(any, error) policy.Outcome {
	if o.bad {
		return policy.Failure
	}
	return 0
}

func (o *owner) Again(_ any, err error) (wait time.Duration, ok bool) {
	return 0, o.again && (o.bad || err != nil)
}

func (o *owner) Keep(value any, release func()) bool {
	b, ok := value.(*body)
	if !ok || !o.keeps {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	b.releases = append(b.releases, release)
	return true
}

func (o *owner) Discard(value any) {
	if b, ok := value.(*body); ok {
		o.mu.Lock()
		b.discarded++
		o.mu.Unlock()
		o.free(b)
	}
}

// call has handler run o, and books what it returns. The caller frees the body.
func (o *owner) call(ctx context.Context, handler policy.Handler) *body {
	value, _ := handler(ctx, o)
	b, ok := value.(*body)
	if !ok {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	b.returned++
	return b
}

// free runs what Keep took.
func (o *owner) free(b *body) {
	if b == nil {
		return
	}
	o.mu.Lock()
	releases := b.releases
	b.releases = nil
	o.mu.Unlock()
	for _, release := range releases {
		release()
	}
}

func (o *owner) all() []*body {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bodies
}

// audit fails the test unless each body came to one end.
func (o *owner) audit(t *testing.T, of string) {
	t.Helper()
	for _, b := range o.all() {
		if b.returned+b.discarded != 1 {
			t.Errorf("a value of %s was returned %d times and discarded %d times, want one of them, once", of, b.returned, b.discarded)
			return
		}
	}
}

// A value that does not reach the caller is discarded, whatever happens.
func checkValues(t *testing.T, fresh func() policy.Policy) {
	tests := []struct {
		name string
		bad  bool
		do   func(leave func()) error
	}{
		{"a success", false, func(func()) error { return nil }},
		{"a call that its Judge calls a failure", true, func(func()) error { return nil }},
		{"a failed call", false, func(func()) error { return errCall }},
		{"a refused call", false, func(func()) error { return errRefuse }},
		{"a call whose caller left", false, func(leave func()) error { leave(); return nil }},
		{"a failed call whose caller left", true, func(leave func()) error { leave(); return context.Canceled }},
		{"a slow call", false, func(func()) error { time.Sleep(time.Hour); return nil }},
	}
	for _, tt := range tests {
		for _, keeps := range []bool{false, true} {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			o := &owner{bad: tt.bad, again: true, keeps: keeps}
			o.do = func(context.Context) error { return tt.do(leave) }
			handler := fresh().Wrap(policy.Invoke)
			o.free(o.call(ctx, handler))
			time.Sleep(24 * time.Hour) // for calls that were left running
			o.audit(t, tt.name)
		}
	}
}

// What a kept value needs lives until the value is released, and no longer than the
// caller.
func checkKept(t *testing.T, fresh func() policy.Policy) {
	handler := fresh().Wrap(policy.Invoke)
	o := &owner{keeps: true, do: func(context.Context) error { return nil }}
	for range crowd {
		ctx, leave := context.WithCancel(t.Context())
		if b := o.call(ctx, handler); b != nil {
			time.Sleep(time.Hour)
			if b.ctx.Err() != nil {
				t.Errorf("the ctx of a kept value ended before its release: %v", context.Cause(b.ctx))
			}
			leave()
			synctest.Wait()
			if b.ctx.Err() == nil {
				t.Error("the ctx of a kept value outlives its caller")
			}
			o.free(b)
		}
		leave()
		if t.Failed() {
			return
		}
	}
	admits(t, handler, "kept values that were released")
}

// Everything at once. Every call returns, no value is lost, and the policy lives on.
func checkStorm(t *testing.T, fresh func() policy.Policy) {
	handler := fresh().Wrap(policy.Invoke)
	var calls sync.WaitGroup
	var books []*owner
	for i := range 5 * crowd {
		ctx, leave := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(600))*time.Second)
		defer leave()
		o := &owner{bad: i%3 == 0, again: i%4 > 0, keeps: i%5 > 0, do: weather(i, leave)}
		books = append(books, o)
		calls.Go(func() {
			recovered(func() { o.free(o.call(ctx, handler)) })
		})
		if i%(crowd/2) == 0 {
			time.Sleep(time.Minute)
		}
	}
	calls.Wait()
	time.Sleep(24 * time.Hour) // for calls that were left running
	for _, o := range books {
		o.audit(t, "a call in a storm")
	}
	admits(t, handler, "a storm")
}

// weather is the ways in which calls end, in turn.
func weather(i int, leave func()) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		time.Sleep(time.Duration(rand.IntN(2)) * time.Second)
		switch i % 8 {
		case 0:
			return errCall
		case 1:
			panic(errCall)
		case 2:
			runtime.Goexit()
		case 3:
			return errRefuse
		case 4:
			leave()
		case 5:
			<-ctx.Done()
			return ctx.Err()
		case 6:
			time.Sleep(time.Minute)
		}
		return nil
	}
}
