package timeout

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/policy"
)

// A Timeout is a [policy.Policy] that bounds how long a call may take. It is safe for
// concurrent use, and must not be copied.
//
// A call that never asks for its ctx's Done costs one allocation and one reading of
// the clock; the timer is set when somebody asks.
type Timeout struct {
	settings  settings
	cause     *ExceededError // of calls under the fixed limit
	abandoned atomic.Int64   // calls that still run
	events    policy.Events
}

// Stats is a snapshot of a [Timeout].
type Stats struct {
	Abandoned int // abandoned calls still running
}

// New makes a timeout of limit > 0. It panics on a bad setting, with all faults in one
// message.
func New(limit time.Duration, opts ...Option) *Timeout {
	t, err := Build(limit, opts...)
	if err != nil {
		panic(err.Error())
	}
	return t
}

// Build is [New] with an error instead of a panic.
func Build(limit time.Duration, opts ...Option) (*Timeout, error) { return build(limit, opts) }

// Wrap implements [policy.Policy].
func (t *Timeout) Wrap(next policy.Handler) policy.Handler {
	return func(ctx context.Context, call policy.Call) (any, error) {
		if ctx.Err() != nil {
			return nil, policy.ContextError(ctx)
		}
		limit := t.settings.limit
		if t.settings.limitFunc != nil {
			limit = t.settings.limitFunc(ctx)
		}
		switch {
		case t.settings.abandon:
			return t.abandonable(ctx, next, call, limit)
		case limit <= 0:
			return next(ctx, call)
		default:
			return t.bound(ctx, next, call, limit)
		}
	}
}

// Name is the name that events, errors and descriptions carry.
func (t *Timeout) Name() string { return t.settings.name }

// Stats reads the numbers as they are now. It costs one atomic load.
func (t *Timeout) Stats() Stats { return Stats{Abandoned: int(t.abandoned.Load())} }

// Describe implements [policy.Describer].
func (t *Timeout) Describe() policy.Description {
	limit := slog.Duration("limit", t.settings.limit)
	if t.settings.limitFunc != nil {
		limit = slog.String("limit", "per call")
	}
	return policy.Description{
		Kind:   kind,
		Name:   t.settings.name,
		Params: []slog.Attr{limit, slog.Bool("abandon", t.settings.abandon)},
	}
}

// Subscribe implements [policy.Observable]: timeout.exceeded, timeout.abandoned and
// call.panicked.
func (t *Timeout) Subscribe(o policy.Observer) (cancel func()) { return t.events.Subscribe(o) }

// bound runs the call on the caller's goroutine.
func (t *Timeout) bound(ctx context.Context, next policy.Handler, call policy.Call, limit time.Duration) (any, error) {
	c := t.derive(ctx, call, limit)
	returned := false
	defer func() {
		if !returned { // a panic or Goexit
			t.broken(c)
		}
	}()
	value, err := next(c, call)
	returned = true
	return t.conclude(c, call, value, err)
}

// conclude ends the ctx of a call that has returned, and makes the policy's verdict
// of what it returned.
func (t *Timeout) conclude(c *callContext, call policy.Call, value any, err error) (any, error) {
	var cause *ExceededError
	if err != nil || t.events.Observed() { // nobody else would learn of a late success
		cause = c.exceeded()
	}
	c.release(call, value)
	if cause == nil {
		return value, err
	}
	outcome := policy.Success
	if err != nil {
		outcome = policy.Failure
		err = verdict(cause, err)
	}
	t.tellBefore(c, call, value, policy.Event{Kind: policy.TimeoutExceeded, Outcome: outcome, Err: err})
	return value, err
}

// tellBefore emits an event before value is returned. A value that the panic of an
// observer keeps from the caller is discarded.
func (t *Timeout) tellBefore(c *callContext, call policy.Call, value any, e policy.Event) {
	told := false
	defer func() {
		if !told {
			policy.Discard(call, value)
		}
	}()
	t.tell(c, e)
	told = true
}

// broken is conclude for a call that did not return.
func (t *Timeout) broken(c *callContext) {
	var cause *ExceededError
	if t.events.Observed() {
		cause = c.exceeded()
	}
	c.finish()
	if cause != nil { // the call's panic is the one that goes on
		guard.Quiet(func() {
			t.tell(c, policy.Event{Kind: policy.TimeoutExceeded, Outcome: policy.Failure, Err: cause})
		})
	}
}

// verdict holds the call's error, unless that is the cause itself.
func verdict(cause *ExceededError, err error) error {
	if err == error(cause) {
		return err
	}
	return &ExceededError{Name: cause.Name, Limit: cause.Limit, Err: err}
}

// tell emits an event of c's call.
func (t *Timeout) tell(c *callContext, e policy.Event) {
	if !t.events.Observed() {
		return
	}
	e.Time = t.settings.clock.Now()
	e.Policy, e.Name = kind, t.settings.name
	e.Duration = c.spent()
	t.events.Emit(c.parent, e)
}
