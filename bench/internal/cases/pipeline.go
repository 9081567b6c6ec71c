package cases

import (
	"context"
	"errors"
	"time"

	backoff5 "github.com/cenkalti/backoff/v5"
	failsafebulkhead "github.com/failsafe-go/failsafe-go/bulkhead"
	failsafebreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	failsaferetry "github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/felixgeelhaar/fortify/ferrors"
	"github.com/felixgeelhaar/fortify/middleware"
	fortifyretry "github.com/felixgeelhaar/fortify/retry"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/timeout"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"
)

func guarded() Case {
	return Case{
		Key:   "retry-breaker-timeout",
		Title: "Retry, breaker and timeout",
		About: "Retry around a consecutive breaker around a timeout of 1 s. A refusal is not retried.",
		Implementations: []Implementation{
			ours("holdfast", "", func(s *Setup) Loop {
				return do(holdfast.Compose(timeout.New(s.Limit), newBreaker(breaker.ConsecutiveFailures(failuresInARow)), newRetry()))
			}),
			bareCall(),
			contextWithTimeout(),
			peer("fortify", "", func(s *Setup) Loop {
				return fortifyChain(fortifyGuard[*Result]().WithTimeout(newFortifyTimeout[*Result](s), s.Limit))
			}),
			peer("composed by hand", "backoff v5, gobreaker and context.WithTimeout", func(s *Setup) Loop {
				return composedLoop(composed{breaker: newGobreaker(), limit: s.Limit})
			}),
			peer("failsafe-go, GetWithExecution", "", func(s *Setup) Loop {
				return failsafeExecution(newFailsafeGuardRetry[*Result](), newFailsafeBreaker(), newFailsafeTimeout(s))
			}),
		},
	}
}

func guardedUntimed() Case {
	return Case{
		Key:   "retry-breaker",
		Title: "Retry and breaker",
		About: "The same without the timeout.",
		Implementations: []Implementation{
			ours("holdfast", "", func(*Setup) Loop { return do(newGuard()) }),
			bareCall(),
			peer("fortify", "", func(*Setup) Loop { return fortifyChain(fortifyGuard[*Result]()) }),
			peer("composed by hand", "backoff v5 and gobreaker", func(*Setup) Loop {
				return composedLoop(composed{breaker: newGobreaker()})
			}),
			peer("failsafe-go, Get", "", func(*Setup) Loop {
				return failsafeGet(newFailsafeGuardRetry[*Result](), newFailsafeBreaker())
			}),
		},
	}
}

func full() Case {
	return Case{
		Key:             "pipeline",
		Title:           "The full pipeline",
		About:           "Retry around a breaker with a time window around a bulkhead around a timeout of 1 s. fortify has no rolling window.",
		Implementations: pipelines(),
	}
}

func fullCancellable() Case {
	return Case{
		Key:             "pipeline-cancellable",
		Title:           "The full pipeline, under a cancellable parent",
		About:           "As a server's request has it.",
		Cancellable:     true,
		Implementations: pipelines(),
	}
}

func pipelines() []Implementation {
	return []Implementation{
		ours("holdfast", "", func(s *Setup) Loop { return do(newPipeline(s)) }),
		bareCall(),
		contextWithTimeout(),
		peer("composed by hand", "backoff v5, gobreaker, x/sync semaphore and context.WithTimeout", func(s *Setup) Loop {
			return composedLoop(composed{breaker: newRollingGobreaker(), slots: newSlots(s), limit: s.Limit})
		}),
		peer("failsafe-go, GetWithExecution", "", func(s *Setup) Loop {
			return failsafeExecution(newFailsafeGuardRetry[*Result](), newFailsafeRateBreaker(), newFailsafeBulkhead(s), newFailsafeTimeout(s))
		}),
	}
}

func fullUntimed() Case {
	return Case{
		Key:   "pipeline-untimed",
		Title: "The full pipeline without its timeout",
		About: "Retry around a breaker with a time window around a bulkhead.",
		Implementations: []Implementation{
			ours("holdfast", "", func(s *Setup) Loop {
				return do(holdfast.Compose(bulkhead.New(s.Slots), newBreaker(TimeWindow()...), newRetry()))
			}),
			bareCall(),
			peer("composed by hand", "backoff v5, gobreaker and x/sync semaphore", func(s *Setup) Loop {
				return composedLoop(composed{breaker: newRollingGobreaker(), slots: newSlots(s)})
			}),
			peer("failsafe-go, Get", "", func(s *Setup) Loop {
				return failsafeGet(newFailsafeGuardRetry[*Result](), newFailsafeRateBreaker(), newFailsafeBulkhead(s))
			}),
		},
	}
}

func observed() Case {
	return Case{
		Key:   "pipeline-observed",
		Title: "The full pipeline, observed",
		About: "One subscriber is told of every attempt and of every call. No peer tells as much of a call that succeeds.",
		Implementations: []Implementation{
			ours("holdfast, observed", "", func(s *Setup) Loop {
				p := newPipeline(s)
				s.Cleanup(p.Subscribe(s.Observer))
				return do(p)
			}),
			ours("holdfast, unobserved", "", func(s *Setup) Loop { return do(newPipeline(s)) }),
			bareCall(),
		},
	}
}

// newPipeline is the full pipeline of ours.
func newPipeline(s *Setup) *holdfast.Pipeline {
	return holdfast.Compose(timeout.New(s.Limit), bulkhead.New(s.Slots), newBreaker(TimeWindow()...), newRetry())
}

// newGuard is a retry around a consecutive breaker of ours.
func newGuard() *holdfast.Pipeline {
	return holdfast.Compose(newBreaker(breaker.ConsecutiveFailures(failuresInARow)), newRetry())
}

func fortifyGuard[T any]() *middleware.Chain[T] {
	return middleware.New[T]().
		WithRetry(fortifyretry.New[T](fortifyretry.Config{
			MaxAttempts:        attempts,
			InitialDelay:       firstDelay,
			MaxDelay:           maxDelay,
			Multiplier:         2,
			NonRetryableErrors: []error{ferrors.ErrCircuitOpen},
		})).
		WithCircuitBreaker(newFortifyBreaker[T]())
}

func newFailsafeGuardRetry[T any]() failsaferetry.RetryPolicy[T] {
	return failsaferetry.NewBuilder[T]().WithMaxAttempts(attempts).WithBackoff(firstDelay, maxDelay).
		AbortOnErrors(failsafebreaker.ErrOpen, failsafebulkhead.ErrFull).Build()
}

func newSlots(s *Setup) *semaphore.Weighted { return semaphore.NewWeighted(int64(s.Slots)) }

// composed is a pipeline made by hand of libraries that do one thing each. What is zero
// is left out.
type composed struct {
	breaker *gobreaker.CircuitBreaker[*Result]
	slots   *semaphore.Weighted
	limit   time.Duration
}

func composedLoop(c composed) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = c.call(w.Context, w.Do)
		}
		return v, err
	}
}

func (c composed) call(ctx context.Context, fn func(context.Context) (*Result, error)) (*Result, error) {
	return backoff5.Retry(ctx, func() (*Result, error) {
		v, err := c.breaker.Execute(func() (*Result, error) { return c.attempt(ctx, fn) })
		if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, errRefused) {
			err = backoff5.Permanent(err)
		}
		return v, err
	}, backoff5.WithBackOff(newExponential5()), backoff5.WithMaxTries(attempts), backoff5.WithMaxElapsedTime(0))
}

func (c composed) attempt(ctx context.Context, fn func(context.Context) (*Result, error)) (*Result, error) {
	if c.slots != nil {
		if !c.slots.TryAcquire(1) {
			return nil, errRefused
		}
		defer c.slots.Release(1)
	}
	if c.limit == 0 {
		return fn(ctx)
	}
	return withTimeout(ctx, c.limit, fn)
}
