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
	mute  bool                            // it is no Judge

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

// keeper is a Keeper that is no Judge.
type keeper struct{ policy.Keeper }

// call has handler run o, and books what it returns. The caller frees the body.
func (o *owner) call(ctx context.Context, handler policy.Handler) *body {
	var call policy.Call = o
	if o.mute {
		call = keeper{o}
	}
	value, _ := handler(ctx, call)
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

// audit fails the test unless each body of the owners came to one end.
func audit(t *testing.T, of string, owners []*owner) {
	t.Helper()
	all, bad := 0, []*body(nil)
	for _, o := range owners {
		for _, b := range o.all() {
			all++
			if b.returned+b.discarded != 1 {
				bad = append(bad, b)
			}
		}
	}
	if len(bad) > 0 {
		t.Errorf("values of %s: %d of %d come to a wrong end, one was returned %d times and discarded %d times; "+
			"want either, once: policy.Discard(call, value) where the caller does not get it",
			of, len(bad), all, bad[0].returned, bad[0].discarded)
	}
}

// A value that does not reach the caller is discarded, whatever happens.
func checkValues(t *testing.T, fresh func() policy.Policy) {
	tests := []struct {
		name string
		bad  bool
		do   func(leave func()) error
	}{
		{"successes", false, func(func()) error { return nil }},
		{"calls that their Judge calls failures", true, func(func()) error { return nil }},
		{"failed calls", false, func(func()) error { return errCall }},
		{"refused calls", false, func(func()) error { return errRefuse }},
		{"calls whose caller left", false, func(leave func()) error { leave(); return nil }},
		{"failed calls whose caller left", true, func(leave func()) error { leave(); return context.Canceled }},
		{"slow calls", false, func(func()) error { time.Sleep(time.Hour); return nil }},
	}
	for _, tt := range tests {
		for i := range 8 {
			p, of := fresh(), tt.name
			if i&4 > 0 {
				of += ", Keepers but no Judges"
			}
			if i&1 > 0 && shock(p) {
				of += ", where an observer panics"
			}
			handler := p.Wrap(policy.Invoke)
			var owners []*owner
			for n := range 10 { // some policies tell after some calls only
				ctx, leave := context.WithCancel(t.Context())
				o := &owner{bad: tt.bad, again: true, keeps: i&2 > 0, mute: i&4 > 0}
				o.do = func(context.Context) error { return tt.do(leave) }
				if n == 9 { // and when all is well again
					time.Sleep(24 * time.Hour)
					o.bad, o.do = false, func(context.Context) error { return nil }
				}
				recovered(func() { o.free(o.call(ctx, handler)) })
				leave()
				owners = append(owners, o)
			}
			time.Sleep(24 * time.Hour) // for calls that were left running
			if audit(t, of, owners); t.Failed() {
				return
			}
		}
	}
}

// shock has p tell an observer that panics, or reports that p tells nobody.
func shock(p policy.Policy) bool {
	observable, ok := p.(policy.Observable)
	if ok {
		observable.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) {
			panic("policytest: an observer panics")
		}))
	}
	return ok
}

// What a kept value needs lives until the value is released, and no longer than the
// caller.
func checkKept(t *testing.T, fresh func() policy.Policy) {
	handler := fresh().Wrap(policy.Invoke)
	o := &owner{keeps: true, do: func(context.Context) error { return nil }}
	for i := range crowd {
		o.mute = i%2 > 0
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
	var owners []*owner
	for i := range 5 * crowd {
		ctx, leave := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(600))*time.Second)
		defer leave()
		o := &owner{bad: i%3 == 0, again: i%4 > 0, keeps: i%5 > 0, mute: i%7 == 0, do: weather(i, leave)}
		owners = append(owners, o)
		calls.Go(func() {
			recovered(func() { o.free(o.call(ctx, handler)) })
		})
		if i%(crowd/2) == 0 {
			time.Sleep(time.Minute)
		}
	}
	calls.Wait()
	time.Sleep(24 * time.Hour) // for calls that were left running
	audit(t, "calls in a storm", owners)
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
