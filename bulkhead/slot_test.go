package bulkhead_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

// BEHAVIOUR 58: a slot granted to a waiter that gives up at that moment is passed on.
func TestGrantMeetsCancel(t *testing.T) {
	ends := map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(250*time.Millisecond, cancel)
			return ctx, cancel
		},
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 250*time.Millisecond)
		},
		"MaxWait": context.WithCancel,
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := []bulkhead.Option{bulkhead.MaxQueue(1)}
				if name == "MaxWait" {
					opts = append(opts, bulkhead.MaxWait(250*time.Millisecond))
				}
				b := bulkhead.New(1, opts...)
				rounds := 10_000
				if name != "cancelled" {
					rounds = 1000
				}
				for range rounds {
					time.AfterFunc(250*time.Millisecond, take(t, b))
					ctx, cancel := end(t.Context())
					if release, err := b.Acquire(ctx); err == nil {
						release()
					}
					cancel()
					synctest.Wait()
				}
				if stats := b.Stats(); stats.InFlight != 0 || stats.Queued != 0 {
					t.Errorf("stats %+v, want an idle bulkhead", stats)
				}
				take(t, b)()
			})
		})
	}
}

func TestReleaseTwice(t *testing.T) { // BEHAVIOUR 59
	b := bulkhead.New(3)
	for range 100 {
		release, other := take(t, b), take(t, b)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(release)
		}
		wg.Wait()
		release()
		free(t, b, 2)
		other()
	}
	free(t, b, 3)
}

func TestSlotComesBack(t *testing.T) { // BEHAVIOUR 60
	ends := map[string]policy.CallFunc{
		"value":   func(context.Context) (any, error) { return 1, nil },
		"nothing": func(context.Context) (any, error) { return nil, nil },
		"error":   func(context.Context) (any, error) { return 1, errCall },
		"panic":   func(context.Context) (any, error) { panic(errCall) },
		"nil":     func(context.Context) (any, error) { panic(nil) },
		"Goexit":  func(context.Context) (any, error) { runtime.Goexit(); return nil, nil },
	}
	for name, call := range ends {
		t.Run(name, func(t *testing.T) {
			b := bulkhead.New(10)
			handler := b.Wrap(policy.Invoke)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					defer func() {
						if got := recover(); name == "panic" && got != errCall {
							t.Errorf("recovered %v, want the call's own value", got)
						}
					}()
					handler(t.Context(), call)
				})
				wg.Wait()
			}
			free(t, b, 10)
		})
	}
}

// body is a call whose value stays open.
type body struct {
	policy.Call
	keeps    bool
	keep     func() // called by Keep, before it says whether it keeps
	releases []func()
}

func (c *body) Discard(any) { c.close() }

func (c *body) Keep(_ any, release func()) bool {
	c.releases = append(c.releases, release)
	if c.keep != nil {
		c.keep()
	}
	return c.keeps
}

func (c *body) close() {
	for _, release := range c.releases {
		release()
	}
}

// running is the error of a call that goes on until end is called.
type running struct {
	error
	done bool
	end  []func()
}

func (r *running) AfterEnd(f func()) { r.end = append(r.end, f) }
func (r *running) Running() bool     { return !r.done }
func (r *running) close() {
	r.done = true
	for _, f := range r.end {
		f()
	}
}

// BEHAVIOUR 60: a slot follows the work.
func TestSlotFollowsTheWork(t *testing.T) {
	left, over := &running{error: errCall}, &running{error: errCall, done: true}
	tests := []struct {
		name  string
		call  *body
		err   error // the call's
		value any
		held  bool   // until close
		close func() // nil: the body's
	}{
		{"open body", &body{keeps: true}, nil, "body", true, nil},
		{"open body beside an error", &body{keeps: true}, errCall, "body", true, nil},
		{"no body", &body{keeps: true}, nil, nil, false, nil},
		{"nothing to keep", &body{}, nil, "body", false, nil},
		{"abandoned", &body{}, errors.Join(errCall, left), nil, true, left.close},
		{"ended meanwhile", &body{}, over, nil, false, over.close},
		{"plain error", &body{}, errCall, nil, false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.call.Call = policy.CallFunc(func(context.Context) (any, error) { return tt.value, tt.err })
			if tt.close == nil {
				tt.close = tt.call.close
			}
			b := bulkhead.New(2)
			value, err := b.Wrap(policy.Invoke)(t.Context(), tt.call)
			if value != tt.value || err != tt.err {
				t.Errorf("got %v, %v, want the call's own", value, err)
			}
			n := 2
			if tt.held {
				n = 1
			}
			free(t, b, n)
			tt.close()
			tt.close()
			free(t, b, 2)
		})
	}
}

func TestKeepThatPanicsKeepsNothing(t *testing.T) {
	call := &body{Call: policytest.Script(policytest.Return(1)), keep: func() { panic(errCall) }}
	b := bulkhead.New(2)
	func() {
		defer func() {
			if got := recover(); got != errCall {
				t.Errorf("recovered %v, want Keep's own value", got)
			}
		}()
		b.Wrap(policy.Invoke)(t.Context(), call)
	}()
	free(t, b, 2)
	call.close()
	free(t, b, 2)
}

// An observer may call back, and harms nothing when it panics.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bulkhead.New(1, bulkhead.MaxQueue(1))
		var told []policy.Kind
		b.Subscribe(policy.ObserverFunc(func(_ context.Context, e policy.Event) {
			told = append(told, e.Kind)
			b.Stats()
			panic(errCall)
		}))
		release := take(t, b)
		defer release()
		for i, want := range []policy.Kind{policy.BulkheadQueued, policy.BulkheadQueued} {
			func() {
				defer func() {
					if recover() != errCall || told[i] != want {
						t.Errorf("told %v, want %v and the observer's panic", told, want)
					}
				}()
				b.Acquire(t.Context())
			}()
			if stats := b.Stats(); stats.Queued != 0 || stats.InFlight != 1 {
				t.Errorf("stats %+v, want nobody queued", stats)
			}
		}
	})
}

// Readers of Stats get in nobody's way, and never see more slots taken than there are.
func TestStatsRefusesNobody(t *testing.T) {
	const callers = 4
	b := bulkhead.New(callers)
	handler := b.Wrap(policy.Invoke)
	var readers, workers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if s := b.Stats(); s.InFlight < 0 || s.InFlight > s.Limit {
						t.Errorf("stats %+v", s)
					}
				}
			}
		})
	}
	for range callers {
		workers.Go(func() {
			for range 2000 {
				if _, err := handler(t.Context(), policytest.Script(policytest.Return(1))); err != nil {
					t.Errorf("refused with a slot free: %v", err)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	readers.Wait()
	free(t, b, callers)
}

// As many callers as there are slots and places never meet a full bulkhead, however
// fast they come back: a place is free as soon as its waiter is served.
func TestPlaceIsFreeOnceServed(t *testing.T) {
	for _, tt := range []struct{ limit, queue int }{{1, 1}, {2, 2}, {1, 7}} {
		b := bulkhead.New(tt.limit, bulkhead.MaxQueue(tt.queue))
		var wg sync.WaitGroup
		for range tt.limit + tt.queue {
			wg.Go(func() {
				for range 3000 {
					release, err := b.Acquire(t.Context())
					if err != nil {
						t.Errorf("limit %d, queue %d: %v", tt.limit, tt.queue, err)
						return
					}
					release()
				}
			})
		}
		wg.Wait()
		free(t, b, tt.limit)
	}

	b := bulkhead.New(1, bulkhead.MaxQueue(1))
	synctest.Test(t, func(t *testing.T) {
		release := take(t, b)
		go func() { take(t, b)() }()
		synctest.Wait()
		release()
		if s := b.Stats(); s.InFlight != 1 || s.Queued != 0 {
			t.Errorf("stats %+v before the waiter wakes, want it served", s)
		}
		take(t, b)() // behind it, not refused
	})
}

func TestStorm(t *testing.T) {
	for name, opts := range map[string][]bulkhead.Option{
		"no queue": nil,
		"queue":    {bulkhead.MaxQueue(100), bulkhead.MaxWait(time.Millisecond)},
		"patience": {bulkhead.MaxQueue(1000)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bulkhead.New(7, opts...)
				var wg sync.WaitGroup
				for range 1000 {
					wg.Go(func() { stray(t, b) })
				}
				wg.Wait()
				free(t, b, 7)
			})
		})
	}
}

// stray runs one call that ends in whatever way, on a goroutine of its own since that
// may end with it.
func stray(t *testing.T, b *bulkhead.Bulkhead) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(int(time.Millisecond))))
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { recover() }()
		b.Wrap(policy.Invoke)(ctx, policy.CallFunc(func(ctx context.Context) (any, error) {
			if n := b.Stats().InFlight; n < 1 || n > 7 {
				t.Errorf("%d in flight", n)
			}
			switch rand.IntN(5) {
			case 0:
				panic(errCall)
			case 1:
				runtime.Goexit()
			case 2:
				cancel()
			case 3:
				time.Sleep(time.Millisecond / 10)
			default:
				<-ctx.Done()
			}
			return 1, ctx.Err()
		}))
	}()
	<-done
}
