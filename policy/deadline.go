package policy

import (
	"context"
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

	expired, free := context.WithTimeoutCause(ctx, 0, cause)
	r := &relay{Context: ctx, done: make(chan struct{})}
	child, cancel := context.WithCancel(r)
	c := &clockContext{Context: child, relay: r, clock: clock, end: clock.Elapsed() + d}
	stop := context.AfterFunc(ctx, func() { r.finish(ctx) })
	timer := clock.AfterFunc(d, func() { r.finish(expired) })
	return c, func() {
		timer.Stop()
		stop()
		cancel()
		free()
	}
}

// clockContext is a standard context below a relay, with the clock's deadline.
type clockContext struct {
	context.Context

	relay *relay
	clock Clock
	end   time.Duration
}

func (c *clockContext) Deadline() (time.Time, bool) {
	return c.clock.Now().Add(c.end - c.clock.Elapsed()), true
}

// Err looks at the relay too: it knows of the caller's end a moment before the
// standard context below it.
func (c *clockContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	return c.relay.Err()
}

// A relay is a parent that can end a standard context with DeadlineExceeded, which
// no cancel function of package context can do: a child asks its parent for Err and
// Cause when the parent's AfterFunc runs. It has one child.
type relay struct {
	context.Context // the caller's

	done chan struct{}

	mu    sync.Mutex
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

func (r *relay) finish(as context.Context) {
	r.mu.Lock()
	if r.ended != nil {
		r.mu.Unlock()
		return
	}
	r.ended = as
	child := r.child
	r.child = nil
	close(r.done)
	r.mu.Unlock()
	if child != nil {
		child()
	}
}
