package cases

import (
	"context"
	"time"

	failsafebulkhead "github.com/failsafe-go/failsafe-go/bulkhead"
	failsafebreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	failsafefallback "github.com/failsafe-go/failsafe-go/fallback"
	failsafelimiter "github.com/failsafe-go/failsafe-go/ratelimiter"
	failsaferetry "github.com/failsafe-go/failsafe-go/retrypolicy"
	failsafetimeout "github.com/failsafe-go/failsafe-go/timeout"

	"github.com/failsafe-go/failsafe-go"
	fortifybreaker "github.com/felixgeelhaar/fortify/circuitbreaker"
	"github.com/felixgeelhaar/fortify/middleware"
	fortifyretry "github.com/felixgeelhaar/fortify/retry"
	fortifytimeout "github.com/felixgeelhaar/fortify/timeout"
	"github.com/sony/gobreaker/v2"
)

// The settings that all implementations share.
const (
	failuresInARow = 5
	windowCalls    = 100
	windowFailures = windowCalls / 2
	windowPeriod   = 10 * time.Second
	minimumCalls   = 100
	failureRate    = 0.5
	slowerThan     = time.Second
	openFor        = time.Hour // longer than any run
	attempts       = 3
	firstDelay     = 100 * time.Millisecond
	maxDelay       = 10 * time.Second
	maxWait        = time.Second
)

// A gobreaker of Results; its rolling window has buckets of a second, as many as ours.

func newGobreaker() *gobreaker.CircuitBreaker[*Result] {
	return gobreaker.NewCircuitBreaker[*Result](gobreaker.Settings{
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresInARow },
	})
}

func newRollingGobreaker() *gobreaker.CircuitBreaker[*Result] {
	return gobreaker.NewCircuitBreaker[*Result](gobreaker.Settings{
		Timeout:      openFor,
		Interval:     windowPeriod,
		BucketPeriod: windowPeriod / 10,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= minimumCalls && float64(c.TotalFailures)/float64(c.Requests) >= failureRate
		},
	})
}

func gobreakerLoop(b *gobreaker.CircuitBreaker[*Result]) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = b.Execute(w.Plain)
		}
		return v, err
	}
}

// Policies of failsafe-go.

func newFailsafeBreaker() failsafebreaker.CircuitBreaker[*Result] {
	return failsafebreaker.NewBuilder[*Result]().WithFailureThreshold(failuresInARow).WithDelay(openFor).Build()
}

func newFailsafeRateBreaker() failsafebreaker.CircuitBreaker[*Result] {
	return failsafebreaker.NewBuilder[*Result]().
		WithFailureRateThreshold(failureRate, minimumCalls, windowPeriod).WithDelay(openFor).Build()
}

func newFailsafeBulkhead(s *Setup) failsafebulkhead.Bulkhead[*Result] {
	return failsafebulkhead.New[*Result](uint(s.Slots))
}

func newFailsafeLimiter(s *Setup) failsafelimiter.RateLimiter[*Result] {
	return failsafelimiter.NewBursty[*Result](uint(s.Tokens), s.Period)
}

func newFailsafeRetry[T any]() failsaferetry.RetryPolicy[T] {
	return failsaferetry.NewBuilder[T]().WithMaxAttempts(attempts).WithBackoff(firstDelay, maxDelay).Build()
}

func newFailsafeTimeout(s *Setup) failsafetimeout.Timeout[*Result] {
	return failsafetimeout.New[*Result](s.Limit)
}

func newFailsafeFallback() failsafefallback.Fallback[*Result] {
	return failsafefallback.NewWithResult(substitute)
}

// failsafePermits is the loop of a failsafe-go breaker by hand.
func failsafePermits(b failsafebreaker.CircuitBreaker[*Result]) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = failsafePermit(b, w)
		}
		return v, err
	}
}

func failsafePermit(b failsafebreaker.CircuitBreaker[*Result], w Work) (*Result, error) {
	if !b.TryAcquirePermit() {
		return nil, failsafebreaker.ErrOpen
	}
	v, err := w.Do(w.Context)
	if err != nil {
		b.RecordError(err)
		return v, err
	}
	b.RecordSuccess()
	return v, nil
}

// failsafeGet is the loop of failsafe-go's executor where the call needs no ctx of its
// policies: the executor is made once.
func failsafeGet(policies ...failsafe.Policy[*Result]) Loop {
	executor := failsafe.With(policies...)
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = executor.Get(w.Plain)
		}
		return v, err
	}
}

// failsafeExecution is the loop where it does, as with a timeout, and where the
// caller's ctx counts.
func failsafeExecution(policies ...failsafe.Policy[*Result]) Loop {
	executor := failsafe.With(policies...)
	return func(n int, w Work) (v *Result, err error) {
		fn := func(e failsafe.Execution[*Result]) (*Result, error) { return w.Do(e.Context()) }
		for range n {
			v, err = executor.WithContext(w.Context).GetWithExecution(fn)
		}
		return v, err
	}
}

// Policies of fortify.

func newFortifyBreaker[T any]() fortifybreaker.CircuitBreaker[T] {
	return fortifybreaker.New[T](fortifybreaker.Config{
		Timeout:     openFor,
		ReadyToTrip: func(c fortifybreaker.Counts) bool { return c.ConsecutiveFailures >= failuresInARow },
	})
}

func newFortifyRetry[T any]() fortifyretry.Retry[T] {
	return fortifyretry.New[T](fortifyretry.Config{
		MaxAttempts:  attempts,
		InitialDelay: firstDelay,
		MaxDelay:     maxDelay,
		Multiplier:   2,
	})
}

func newFortifyTimeout[T any](s *Setup) fortifytimeout.Timeout[T] {
	return fortifytimeout.New[T](fortifytimeout.Config{DefaultTimeout: s.Limit})
}

// A fortifyPolicy is what most of fortify's policies are.
type fortifyPolicy interface {
	Execute(ctx context.Context, fn func(context.Context) (*Result, error)) (*Result, error)
}

func fortifyLoop(p fortifyPolicy) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = p.Execute(w.Context, w.Do)
		}
		return v, err
	}
}

func fortifyChain(chain *middleware.Chain[*Result]) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = chain.Execute(w.Context, w.Do)
		}
		return v, err
	}
}
