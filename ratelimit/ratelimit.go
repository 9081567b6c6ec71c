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
	line     list.List // of those who wait: a chan struct{}, closed for the head
	rejected uint64
}

// New makes a limiter that lets calls begin at rate r, and up to burst ≥ 1 of them at
// once after idle time. It starts with a full burst. It panics on a bad setting.
func New(r Rate, burst int, opts ...Option) *Limiter {
	l, err := build(r, burst, opts)
	if err != nil {
		panic(err.Error())
	}
	return l
}

// Build is [New] with an error for a bad setting.
func Build(r Rate, burst int, opts ...Option) (*Limiter, error) { return build(r, burst, opts) }

// Wrap implements [policy.Policy].
func (l *Limiter) Wrap(next policy.Handler) policy.Handler {
	return func(ctx context.Context, call policy.Call) (any, error) {
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
func (l *Limiter) Wait(ctx context.Context) error { return l.admit(ctx, forever) }

// Name is the name that events, errors and descriptions carry.
func (l *Limiter) Name() string { return l.settings.name }

// Stats is a snapshot of a [Limiter].
type Stats struct {
	Rate      Rate
	Burst     int
	Available float64 // tokens there now, the part of the next one included
	Rejected  uint64  // refusals so far, those by Allow included
}

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
	if err := policy.ContextError(ctx); err != nil {
		return err
	}
	now := l.settings.clock.Elapsed()
	if l.take(now) {
		return nil
	}
	wait, place := l.join(now, min(longest, l.left(ctx)))
	if place == nil {
		return l.refuse(ctx, wait, wait <= longest)
	}
	return l.stand(ctx, place, wait)
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

// join takes the last place in the line if its turn comes within longest. Else the
// place is nil and nothing but the count of refusals has changed.
func (l *Limiter) join(now, longest time.Duration) (wait time.Duration, place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = l.state.wait(now, l.line.Len())
	if wait > longest {
		l.rejected++
		return wait, nil
	}
	turn := make(chan struct{})
	if l.line.Len() == 0 {
		close(turn)
	}
	return wait, l.line.PushBack(turn)
}

// stand waits in line until it has a token. Only the head has a timer: whoever comes
// to the head reads from the state when its token is due, so that those behind one
// that leaves move up by themselves.
func (l *Limiter) stand(ctx context.Context, place *list.Element, wait time.Duration) error {
	defer l.leave(place)
	if wait > 0 && l.events.Observed() {
		l.emit(ctx, policy.Event{Kind: policy.RateLimitDelayed, Delay: wait})
	}
	select {
	case <-place.Value.(chan struct{}):
	case <-ctx.Done():
	}
	for {
		if err := policy.ContextError(ctx); err != nil {
			return err
		}
		due := l.takeAsHead()
		if due == 0 {
			return nil
		}
		if err := policy.Sleep(ctx, l.settings.clock, due); err != nil {
			return err
		}
	}
}

// takeAsHead takes a token, or tells how long it will be until there is one.
func (l *Limiter) takeAsHead() time.Duration {
	now := l.settings.clock.Elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.take(now) {
		return 0
	}
	return l.state.wait(now, 0)
}

// leave gives the place in line back, and the turn to the next.
func (l *Limiter) leave(place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := l.line.Front() == place
	l.line.Remove(place)
	if next := l.line.Front(); head && next != nil {
		close(next.Value.(chan struct{}))
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
	if l.events.Observed() {
		l.emit(ctx, policy.Event{Kind: policy.RateLimitRejected, Err: err, Reason: reason})
	}
	return err
}

func (l *Limiter) emit(ctx context.Context, event policy.Event) {
	event.Policy, event.Name, event.Time = kind, l.settings.name, l.settings.clock.Now()
	l.events.Emit(ctx, event)
}
