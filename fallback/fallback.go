package fallback

import (
	"context"
	"errors"
	"log/slog"

	"github.com/holdfast-go/holdfast/policy"
)

// A Fallback is a [policy.Policy] that answers in place of a call that failed. It is
// safe for concurrent use, and must not be copied. On success it allocates nothing.
type Fallback struct {
	settings settings
	answer   func(ctx context.Context, err error) (any, error)
	events   policy.Events
}

// Value answers with v. It panics on a bad setting, with all faults in one message.
//
// The pipeline's calls must return a T: holdfast.Do answers another type with a
// ResultTypeError.
func Value[T any](v T, opts ...Option) *Fallback {
	return build(func(context.Context, error) (any, error) { return v, nil }, opts)
}

// Func answers with what f makes of the call's error, which is nil where a value was
// called a failure. If f fails too, both errors are reachable in the result. f must be
// safe for concurrent use; no lock is held while it runs. Func panics if f is nil, and on
// a bad setting.
//
// The pipeline's calls must return a T, as with [Value].
func Func[T any](f func(ctx context.Context, err error) (T, error), opts ...Option) *Fallback {
	if f == nil {
		panic("fallback: Func(nil): must not be nil")
	}
	return build(func(ctx context.Context, err error) (any, error) { return f(ctx, err) }, opts)
}

// Wrap implements [policy.Policy].
func (f *Fallback) Wrap(next policy.Handler) policy.Handler {
	return func(ctx context.Context, call policy.Call) (any, error) {
		if ctx.Err() != nil {
			return nil, policy.ContextError(ctx)
		}
		value, err := next(ctx, call)
		if _, judges := call.(policy.Judge); err == nil && f.settings.classify == nil && !judges {
			return value, nil
		}
		if !f.wanted(ctx, call, value, err) {
			return value, err
		}
		policy.Discard(call, value) // before the answer, which may need what value holds
		return f.replace(ctx, call, err)
	}
}

// Name is the name that events, errors and descriptions carry.
func (f *Fallback) Name() string { return f.settings.name }

// Describe implements [policy.Describer].
func (f *Fallback) Describe() policy.Description {
	return policy.Description{
		Kind:   kind,
		Name:   f.settings.name,
		Params: []slog.Attr{slog.Bool("classifier", f.settings.classify != nil)},
	}
}

// Subscribe implements [policy.Observable]: fallback.used and fallback.failed.
func (f *Fallback) Subscribe(o policy.Observer) (cancel func()) { return f.events.Subscribe(o) }

// wanted tells whether the outcome is one to answer for. A value that the panic of a
// classifier keeps from the caller is discarded.
func (f *Fallback) wanted(ctx context.Context, call policy.Call, value any, err error) bool {
	judged := false
	defer func() {
		if !judged {
			policy.Discard(call, value)
		}
	}()
	failed := f.settings.classify == nil && err != nil ||
		policy.Judgement(f.settings.classify, call, value, err) == policy.Failure
	judged = true
	return failed && !errors.Is(ctx.Err(), context.Canceled)
}

// replace answers for a call that ended with err, and tells. An answer that the panic of
// an observer keeps from the caller is discarded.
func (f *Fallback) replace(ctx context.Context, call policy.Call, err error) (any, error) {
	value, own := f.answer(ctx, err)
	event := policy.Event{Kind: policy.FallbackUsed, Outcome: policy.Success, Err: err}
	if own != nil {
		err = join(f.settings.name, err, own)
		event = policy.Event{Kind: policy.FallbackFailed, Outcome: policy.Failure, Err: err}
	} else {
		err = nil
	}
	if f.events.Observed() {
		told := false
		defer func() {
			if !told {
				policy.Discard(call, value)
			}
		}()
		event.Policy, event.Name = kind, f.settings.name
		f.events.Emit(ctx, event)
		told = true
	}
	return value, err
}
