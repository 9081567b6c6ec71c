package ratelimit

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// A Limiter is a [policy.Policy] that bounds how many calls begin within a time. It
// is safe for concurrent use, and must not be copied. While tokens are there, a call
// costs one reading of the clock and one lock, and allocates nothing.
type Limiter struct {
	settings settings
	events   policy.Events

	mu       sync.Mutex // guards the fields below; not held during a wait
	state    state
	line     list.List    // of those who wait: a *waiter each
	timer    policy.Timer // serves the line; nil while it is empty
	rejected uint64
}

// Stats is a snapshot of a [Limiter].
type Stats struct {
	Rate      Rate
	Burst     int
	Available float64 // tokens there now, the part of the next one included
	Rejected  uint64  // refusals so far, those by Allow included
}

// New makes a limiter that lets calls begin at rate r, and up to burst ≥ 1 of them at
// once after idle time. It starts with a full burst. It panics on a bad setting, with
// all faults in one message.
//
// Callers that wait use the rate to the full if burst is 2 or more: with 1, what a timer
// is late by is lost, for the calls would come too close otherwise.
func New(r Rate, burst int, opts ...Option) *Limiter {
	l, err := build(r, burst, opts)
	if err != nil {
		panic(err.Error())
	}
	return l
}

// Build is [New] with an error instead of a panic.
func Build(r Rate, burst int, opts ...Option) (*Limiter, error) { return build(r, burst, opts) }

// Wrap implements [policy.Policy].
func (l *Limiter) Wrap(next policy.Handler) policy.Handler {
	return func(ctx context.Context, call policy.Call) (any, error) {
		if ctx.Err() != nil {
			return nil, policy.ContextError(ctx)
		}
		if err := l.admit(ctx, l.settings.maxWait); err != nil {
			return nil, err
		}
		return next(ctx, call)
	}
}

// Allow takes a token if there is one and nobody waits for it. It never waits.
func (l *Limiter) Allow() bool {
	now := l.settings.clock.Elapsed()
	if l.take(now) {
		return true
	}
	if wait, _ := l.join(now, never); l.events.Observed() {
		l.refuse(context.Background(), wait, false)
	}
	return false
}

// Wait takes a token by hand, and waits for it as long as ctx allows: MaxWait does
// not apply. Where the token would come after ctx's deadline, it does not begin to
// wait but returns an error that Is [ErrExceeded] and context.DeadlineExceeded; where
// ctx ends, [policy.ContextError].
func (l *Limiter) Wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return policy.ContextError(ctx)
	}
	return l.admit(ctx, forever)
}

// Name is the name that events, errors and descriptions carry.
func (l *Limiter) Name() string { return l.settings.name }

// Stats reads the numbers as they are now. It costs as much as a call.
func (l *Limiter) Stats() Stats {
	now := l.settings.clock.Elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{
		Rate:      l.settings.rate,
		Burst:     l.settings.burst,
		Available: l.state.available(now),
		Rejected:  l.rejected,
	}
}

// Describe implements [policy.Describer].
func (l *Limiter) Describe() policy.Description {
	return policy.Description{Kind: kind, Name: l.settings.name, Params: []slog.Attr{
		slog.String("rate", l.settings.rate.String()),
		slog.Int("burst", l.settings.burst),
		slog.Duration("max_wait", l.settings.maxWait),
	}}
}

// Subscribe implements [policy.Observable]: ratelimit.delayed and ratelimit.rejected.
func (l *Limiter) Subscribe(o policy.Observer) (cancel func()) { return l.events.Subscribe(o) }

// How long a wait may be at most, beside MaxWait.
const (
	never   = time.Duration(-1)
	forever = time.Duration(math.MaxInt64)
)

// admit takes a token, and waits up to longest for it.
func (l *Limiter) admit(ctx context.Context, longest time.Duration) error {
	now := l.settings.clock.Elapsed()
	if l.take(now) {
		return nil
	}
	wait, w := l.join(now, min(longest, l.left(ctx)))
	if w == nil {
		return l.refuse(ctx, wait, wait <= longest)
	}
	return l.stand(ctx, w, wait)
}

// take takes a token if nobody stands in line for it.
func (l *Limiter) take(now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line.Len() == 0 && l.state.take(now)
}

// left is the longest wait that is over before ctx's deadline.
func (l *Limiter) left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return forever
	}
	if left := deadline.Sub(l.settings.clock.Now()); left > 0 {
		return left - 1
	}
	return never
}

// A waiter is somebody in line.
type waiter struct {
	place   *list.Element
	turn    chan struct{} // closed once it has its token
	arrival ticks         // of the state then
}

// join takes the last place in the line if its turn comes within longest. Else the
// waiter is nil and nothing but the count of refusals has changed.
func (l *Limiter) join(now, longest time.Duration) (wait time.Duration, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = l.state.wait(now, l.line.Len())
	if wait > longest {
		l.rejected++
		return wait, nil
	}
	w = &waiter{turn: make(chan struct{})}
	w.place = l.line.PushBack(w)
	if l.timer == nil {
		l.serveLocked(now)
	}
	return wait, w
}

// stand waits in line until it has a token.
func (l *Limiter) stand(ctx context.Context, w *waiter, wait time.Duration) error {
	admitted := false
	defer func() {
		if !admitted { // the caller has left, or an observer panics
			l.leave(w)
		}
	}()
	if wait > 0 {
		l.tell(ctx, policy.Event{Kind: policy.RateLimitDelayed, Delay: wait})
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
	}
	err := policy.ContextError(ctx)
	admitted = err == nil
	return err
}

// serve is what the timer does. Tokens are given out on its goroutine, when they are
// due, and not when those who wait for them come to wake: that may be late.
func (l *Limiter) serve() {
	now := l.settings.clock.Elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serveLocked(now)
}

// serveLocked gives the tokens that are there to the first in line, and sets the timer
// for the next. Where somebody leaves, those behind move up by themselves: it is
// the head's token that the timer is set for, whoever the head is then.
func (l *Limiter) serveLocked(now time.Duration) {
	l.stopLocked()
	for l.line.Len() > 0 {
		if !l.state.take(now) {
			l.timer = l.settings.clock.AfterFunc(l.state.wait(now, 0), l.serve)
			return
		}
		w := l.line.Remove(l.line.Front()).(*waiter)
		w.arrival = l.state.arrival
		close(w.turn)
	}
}

func (l *Limiter) stopLocked() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// leave gives the place in line back, or the token that has come at this very moment:
// it is the next one's then, unless another has been given out since.
func (l *Limiter) leave(w *waiter) {
	now := l.settings.clock.Elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.turn:
		l.state.putBack(w.arrival)
		l.serveLocked(now)
	default:
		if l.line.Remove(w.place); l.line.Len() == 0 {
			l.stopLocked()
		}
	}
}

// refuse answers a call that would have had to wait so long. Late tells that it might
// have, had its deadline allowed it.
func (l *Limiter) refuse(ctx context.Context, wait time.Duration, late bool) error {
	var err error = &ExceededError{Name: l.settings.name, RetryIn: wait}
	reason := "no token in time"
	if late {
		err = fmt.Errorf("%w: %w", err, context.DeadlineExceeded)
		reason = "no token before the deadline"
	}
	l.tell(ctx, policy.Event{Kind: policy.RateLimitRejected, Err: err, Reason: reason})
	return err
}

func (l *Limiter) tell(ctx context.Context, event policy.Event) {
	if l.events.Observed() {
		event.Policy, event.Name, event.Time = kind, l.settings.name, l.settings.clock.Now()
		l.events.Emit(ctx, event)
	}
}
