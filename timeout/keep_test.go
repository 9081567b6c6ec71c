package timeout_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/timeout"
)

// owner is a call whose value lives on until it is released.
type owner struct {
	invoke func(ctx context.Context)
	value  any
	err    error
	keeps  bool

	mu        sync.Mutex
	release   []func()
	discarded []any
}

func (o *owner) Invoke(ctx context.Context) (any, error) {
	if o.invoke != nil {
		o.invoke(ctx)
	}
	return o.value, o.err
}

func (o *owner) Keep(_ any, release func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.keeps {
		o.release = append(o.release, release)
	}
	return o.keeps
}

func (o *owner) Discard(value any) {
	o.mu.Lock()
	o.discarded = append(o.discarded, value)
	o.mu.Unlock()
	o.done()
}

// done is the end of the value.
func (o *owner) done() {
	o.mu.Lock()
	release := o.release
	o.release = nil
	o.mu.Unlock()
	for _, f := range release {
		f()
	}
}

// A kept value is free of the limit: its ctx ends with its release, or the caller's.
func TestKept(t *testing.T) {
	asks := map[string]func(ctx context.Context){
		"unasked":           func(context.Context) {},
		"asked before":      func(ctx context.Context) { ctx.Done() },
		"asked Deadline":    func(ctx context.Context) { ctx.Deadline() },
		"asked by children": func(ctx context.Context) { context.AfterFunc(ctx, func() {}) },
	}
	left := errors.Join(errCall, context.Canceled)
	for name, asked := range asks {
		for _, abandon := range []bool{false, true} {
			for _, released := range []bool{false, true} {
				bubbled(t, name, func(t *testing.T) {
					var opts []timeout.Option
					if abandon {
						opts = append(opts, timeout.Abandon())
					}
					parent, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					var ctx context.Context
					call := &owner{value: "body", keeps: true, invoke: func(c context.Context) {
						ctx = c
						asked(c)
						time.Sleep(49 * ms)
					}}
					p := timeout.New(50*ms, opts...)
					recorder := policytest.Record(p)
					value, err := p.Wrap(policy.Invoke)(parent, call)
					if value != "body" || err != nil {
						t.Fatalf("got %v, %v", value, err)
					}
					time.Sleep(time.Hour)
					checkLive(t, ctx)
					if _, ok := ctx.Deadline(); ok || ctx.Done() == nil {
						t.Error("still under the limit")
					}
					checkLive(t, ctx)
					if released {
						call.done()
						checkEnded(t, ctx, context.Canceled, false)
					} else {
						cancel(left)
						synctest.Wait()
						checkEnded(t, ctx, context.Canceled, false)
						if context.Cause(ctx) != left {
							t.Errorf("cause %v, want the caller's", context.Cause(ctx))
						}
						call.done()
					}
					if len(recorder.Kinds()) != 0 {
						t.Errorf("told %v", recorder.Kinds())
					}
				})
			}
		}
	}
}

// A value beside an error may be kept too, and what is not kept ends at once.
func TestKeepAnswers(t *testing.T) {
	tests := []struct {
		name string
		call *owner
		kept bool
	}{
		{"kept", &owner{value: 1, keeps: true}, true},
		{"kept beside an error", &owner{value: 1, keeps: true, err: errCall}, true},
		{"not kept", &owner{value: 1}, false},
		{"no value", &owner{keeps: true}, false},
		{"Keep panics", &owner{value: 1, keeps: true}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var ctx context.Context
			tt.call.invoke = func(c context.Context) { ctx = c }
			var call policy.Call = tt.call
			if tt.name == "Keep panics" {
				call = &panickingKeeper{tt.call}
			}
			func() {
				defer func() { recover() }()
				timeout.New(time.Hour).Wrap(policy.Invoke)(t.Context(), call)
			}()
			if live := ctx.Err() == nil; live != tt.kept {
				t.Errorf("ctx: %v, want it alive: %t", ctx.Err(), tt.kept)
			}
			tt.call.done()
			if ctx.Err() == nil {
				t.Error("ctx lives after the release")
			}
		})
	}
}

type panickingKeeper struct{ *owner }

func (k *panickingKeeper) Keep(any, func()) bool { panic(errors.New("keep")) }

// A late value that the panic of an observer keeps from the caller is discarded, with
// all that was kept for it: a slot of a bulkhead, say.
func TestObserverPanicsOnLateValue(t *testing.T) {
	clock := &timerless{Clock: policytest.NewClock(time.Unix(1e9, 0))} // an abandonable call is waited for
	for name, opts := range map[string][]timeout.Option{
		"bound":                  {timeout.Clock(clock)},
		"abandonable":            {timeout.Clock(clock), timeout.Abandon()},
		"abandoned, with timers": {timeout.Abandon()},
	} {
		for _, err := range []error{nil, errCall} {
			for _, keeps := range []bool{false, true} {
				bubbled(t, name, func(t *testing.T) {
					p := timeout.New(50*ms, opts...)
					p.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) { panic("observer") }))
					var ctx context.Context
					call := &owner{value: "body", err: err, keeps: keeps, invoke: func(c context.Context) {
						ctx = c
						clock.Advance(time.Hour)
						time.Sleep(time.Hour)
					}}
					freed := 0
					handler := p.Wrap(func(ctx context.Context, c policy.Call) (any, error) {
						value, err := c.Invoke(ctx)
						c.(policy.Keeper).Keep(value, func() { freed++ })
						return value, err
					})
					func() {
						defer func() {
							if got := recover(); got != "observer" {
								t.Errorf("recovered %v, want the observer's", got)
							}
						}()
						handler(t.Context(), call)
					}()
					time.Sleep(time.Hour)
					synctest.Wait()
					if len(call.discarded) != 1 || ctx.Err() == nil || keeps && freed != 1 {
						t.Errorf("discarded %v, ctx %v, freed %d", call.discarded, ctx.Err(), freed)
					}
				})
			}
		}
	}
}
