package cases

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/policy"
)

var start = time.Now()

// sink keeps the compiler from dropping what floors compute.
var sink atomic.Int64

func floors() Case {
	return Case{
		Key:   "floors",
		Title: "Floors",
		About: "What the cheapest things cost on this machine, each around the same call, beside a pipeline without policies.",
		Implementations: []Implementation{
			ours("holdfast, empty pipeline", "", func(*Setup) Loop { return do(holdfast.Compose()) }),
			bareCall(),
			floor("+ one atomic add", "", func(*Setup) Loop {
				var word atomic.Int64
				return func(n int, w Work) (v *Result, err error) {
					for range n {
						word.Add(1)
						v, err = w.Do(w.Context)
					}
					return v, err
				}
			}),
			floor("+ one monotonic clock read", "", func(*Setup) Loop {
				return func(n int, w Work) (v *Result, err error) {
					var elapsed time.Duration
					for range n {
						elapsed += time.Since(start)
						v, err = w.Do(w.Context)
					}
					sink.Store(int64(elapsed))
					return v, err
				}
			}),
			contextWithTimeout(),
			floor("+ one atomic load", "of a pointer that is nil", func(*Setup) Loop {
				var listener atomic.Pointer[int]
				return func(n int, w Work) (v *Result, err error) {
					for range n {
						if listener.Load() != nil {
							sink.Add(1)
						}
						v, err = w.Do(w.Context)
					}
					return v, err
				}
			}),
			yardstick("+ policy.Events, unobserved", "what every policy pays for its events", func(*Setup) Loop {
				events := new(policy.Events)
				return func(n int, w Work) (v *Result, err error) {
					for range n {
						if events.Observed() {
							events.Emit(w.Context, policy.Event{})
						}
						v, err = w.Do(w.Context)
					}
					return v, err
				}
			}),
		},
	}
}

func bareCall() Implementation {
	return floor("bare call", "through a func value", func(*Setup) Loop {
		return func(n int, w Work) (v *Result, err error) {
			for range n {
				v, err = w.Do(w.Context)
			}
			return v, err
		}
	})
}

func contextWithTimeout() Implementation {
	return floor("context.WithTimeout", "and its cancel, around the call", func(s *Setup) Loop {
		return func(n int, w Work) (v *Result, err error) {
			for range n {
				v, err = withTimeout(w.Context, s.Limit, w.Do)
			}
			return v, err
		}
	})
}

func withTimeout(ctx context.Context, limit time.Duration, fn func(context.Context) (*Result, error)) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return fn(ctx)
}

// do is the loop of a pipeline of ours.
func do(p *holdfast.Pipeline) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = holdfast.Do(w.Context, p, w.Do)
		}
		return v, err
	}
}
