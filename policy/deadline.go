package policy

import (
	"context"
	"math"
	"sync"
	"time"
)

// WithTimeout is context.WithTimeoutCause on clock. On [SystemClock] it is exactly
// that; on any other clock the context's timer is the clock's, and the rest as
// there: Err is context.DeadlineExceeded once d has passed, in child contexts too,
// context.Cause is cause (nil: DeadlineExceeded), and cancel frees the timer.
//
// On another clock the Deadline moves with Now when Now is stepped, so that what
// remains is right at any time.
func WithTimeout(ctx context.Context, clock Clock, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if _, ok := clock.(systemClock); ok {
		return context.WithTimeoutCause(ctx, d, cause)
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Sub(clock.Now()) <= d {
		return context.WithCancel(ctx)
	}

	r := &relay{Context: ctx, done: make(chan struct{})}
	child, cancel := context.WithCancel(r)
	c := &clockContext{Context: child, relay: r, clock: clock, end: saturated(clock.Elapsed(), d)}
	stop := context.AfterFunc(ctx, r.follow)
	expire := func() { r.finish(expired(ctx, cause)) }
	timer := clock.AfterFunc(d, expire)
	if r.follow(); d <= 0 {
		expire() // now, whenever the timer comes to it
	}
	return c, func() {
		timer.Stop()
		stop()
		cancel()
	}
}

// expired is a context ended by a deadline. It is not below ctx, whose own deadline is
// another clock's, and would count as sooner.
func expired(ctx context.Context, cause error) context.Context {
	ended, free := context.WithTimeoutCause(context.WithoutCancel(ctx), 0, cause)
	free()
	return ended
}

func saturated(elapsed, d time.Duration) time.Duration {
	if elapsed > 0 && d > math.MaxInt64-elapsed {
		return math.MaxInt64
	}
	return elapsed + d
}

// clockContext is a standard context below a relay, with the clock's deadline. The
// caller's end reaches the relay on a goroutine of its own; whoever asks in the
// meantime brings it there.
type clockContext struct {
	context.Context

	relay *relay
	clock Clock
	end   time.Duration
}

func (c *clockContext) Deadline() (time.Time, bool) {
	return c.clock.Now().Add(c.end - c.clock.Elapsed()), true
}

func (c *clockContext) Err() error {
	c.relay.follow()
	return c.Context.Err()
}

// Value is how context.Cause asks.
func (c *clockContext) Value(key any) any {
	c.relay.follow()
	return c.Context.Value(key)
}

// A relay is a parent that can end a standard context with DeadlineExceeded, which
// no cancel function of package context can do: a child asks its parent for Err and
// Cause when the parent's AfterFunc runs. It has one child.
type relay struct {
	context.Context // the caller's

	done chan struct{}
	once sync.Once

	mu    sync.Mutex      // guards the fields below
	ended context.Context // answers for the relay once it has ended
	child func()
}

func (r *relay) Done() <-chan struct{} { return r.done }

func (r *relay) Err() error { return r.current().Err() }

func (r *relay) Value(key any) any { return r.current().Value(key) }

func (r *relay) AfterFunc(f func()) (stop func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.child = f
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		stopped := r.child != nil
		r.child = nil
		return stopped
	}
}

func (r *relay) current() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return r.ended
	}
	return r.Context
}

// follow ends the relay if the caller's ctx has ended.
func (r *relay) follow() {
	if r.Context.Err() != nil {
		r.finish(r.Context)
	}
}

// finish ends the relay, and the context below it before it returns to anybody.
func (r *relay) finish(as context.Context) {
	r.once.Do(func() {
		r.mu.Lock()
		r.ended = as
		child := r.child
		r.child = nil
		close(r.done)
		r.mu.Unlock()
		if child != nil {
			child()
		}
	})
}
