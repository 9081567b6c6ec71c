package retry

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// A Retry is a [policy.Policy] that repeats a call that failed. It is safe for
// concurrent use, and must not be copied. It holds no state: attempts, elapsed time
// and backoff belong to one call, and two calls share none of it.
//
// A call whose first attempt succeeds costs one reading of the clock, and no allocation. A
// further attempt allocates its ctx.
type Retry struct {
	settings settings
	events   policy.Events
}

// New makes a Retry. It panics on a bad setting, with all faults in one message.
func New(opts ...Option) *Retry {
	r, err := Build(opts...)
	if err != nil {
		panic(err.Error())
	}
	return r
}

// Build is [New] with an error instead of a panic.
func Build(opts ...Option) (*Retry, error) {
	s, err := build(opts)
	if err != nil {
		return nil, err
	}
	return &Retry{settings: s}, nil
}

// Wrap implements [policy.Policy].
//
// The Handler returns the last attempt's outcome: a value as it is; an error as it is
// where the first attempt was final, and inside an [ExhaustedError] where more than
// one attempt was made or a limit kept us from the next. A value beside an error is
// returned with it. The value of an attempt that is repeated is discarded before the
// wait, so that a wait that ctx ends leaves none.
func (r *Retry) Wrap(next policy.Handler) policy.Handler {
	return func(ctx context.Context, call policy.Call) (any, error) {
		if ctx.Err() != nil {
			return nil, policy.ContextError(ctx)
		}
		begin := r.settings.clock.Elapsed() // the verdict tells it; afterwards it is too late to ask
		if r.events.Observed() || AttemptFrom(ctx) != 1 {
			return r.run(ctx, next, call, begin)
		}
		value, err := next(ctx, call)
		if err == nil && !r.judges(call) {
			return value, nil
		}
		return r.again(ctx, next, call, begin, value, err)
	}
}

// Name is the name that events, errors and descriptions carry.
func (r *Retry) Name() string { return r.settings.name }

// Describe implements [policy.Describer].
func (r *Retry) Describe() policy.Description {
	s := &r.settings
	params := []slog.Attr{slog.Int("attempts", s.attempts), slog.String("backoff", s.strategy.String())}
	if s.strategy != custom {
		params = append(params, slog.Duration("base", s.base), slog.Duration("max", s.max),
			slog.String("jitter", s.jitter.String()))
	}
	if s.maxElapsed != unlimited {
		params = append(params, slog.Duration("max_elapsed", s.maxElapsed))
	}
	params = append(params, slog.Duration("max_retry_after", s.maxRetryAfter), slog.Bool("classifier", s.classify != nil))
	return policy.Description{Kind: kind, Name: s.name, Params: params}
}

// Subscribe implements [policy.Observable]: attempt.done, retry.scheduled and
// retry.exhausted.
func (r *Retry) Subscribe(o policy.Observer) (cancel func()) { return r.events.Subscribe(o) }

// judges tells whether somebody has to be asked about a value without an error.
func (r *Retry) judges(call policy.Call) bool {
	if r.settings.classify != nil {
		return true
	}
	_, ok := call.(policy.Judge)
	return ok
}

// run is a call from its first attempt on.
func (r *Retry) run(ctx context.Context, next policy.Handler, call policy.Call, begin time.Duration) (any, error) {
	e := execution{settings: &r.settings, events: &r.events, ctx: ctx, next: next, call: call, begin: begin}
	defer e.release()
	e.attempt()
	return e.finish()
}

// again is run for a call whose first attempt has been made, with this outcome.
func (r *Retry) again(ctx context.Context, next policy.Handler, call policy.Call, begin time.Duration,
	value any, err error,
) (any, error) {
	e := execution{settings: &r.settings, events: &r.events, ctx: ctx, next: next, call: call, begin: begin, number: 1}
	defer e.release()
	e.judge(value, err)
	return e.finish()
}
