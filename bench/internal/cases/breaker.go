package cases

import (
	"context"
	"sync/atomic"

	failsafebreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policy"
)

func breakerConsecutive() Case {
	return Case{
		Key:   "breaker-consecutive",
		Title: "Closed breaker, consecutive failures",
		About: "The circuit opens after 5 failures in a row.",
		Implementations: []Implementation{
			ours("holdfast", "", func(s *Setup) Loop { return do(newConsecutive(s)) }),
			ours("holdfast, by hand", "Allow and done", func(*Setup) Loop { return allowLoop(newBreaker()) }),
			floor("one packed word", "hand-written: one atomic load, no half-open, no events", func(*Setup) Loop {
				return new(oneWord).loop
			}),
			bareCall(),
			peer("gobreaker", "", func(*Setup) Loop { return gobreakerLoop(newGobreaker()) }),
			peer("fortify", "", func(*Setup) Loop { return fortifyLoop(newFortifyBreaker[*Result]()) }),
			peer("failsafe-go, permits", "by hand", func(*Setup) Loop { return failsafePermits(newFailsafeBreaker()) }),
			peer("failsafe-go, Get", "", func(*Setup) Loop { return failsafeGet(newFailsafeBreaker()) }),
		},
	}
}

func breakerCount() Case {
	return Case{
		Key:   "breaker-count",
		Title: "Closed breaker, count window",
		About: "The circuit opens at 50 failures in the last 100 calls.",
		Implementations: []Implementation{
			ours("holdfast", "Failures", func(s *Setup) Loop {
				return do(withBreaker(s, breaker.Failures(windowFailures, breaker.Last(windowCalls))))
			}),
			ours("holdfast, FailureRate", "", func(s *Setup) Loop {
				return do(withBreaker(s, breaker.FailureRate(failureRate, breaker.Last(windowCalls))))
			}),
			bareCall(),
			peer("failsafe-go, permits", "by hand", func(*Setup) Loop { return failsafePermits(newFailsafeCountBreaker()) }),
			peer("failsafe-go, Get", "", func(*Setup) Loop { return failsafeGet(newFailsafeCountBreaker()) }),
		},
	}
}

func breakerTime() Case {
	return Case{
		Key:   "breaker-time",
		Title: "Closed breaker, time window",
		About: "The circuit opens when half of at least 100 calls within 10 s failed; the window has 10 buckets.",
		Implementations: []Implementation{
			ours("holdfast", "", func(s *Setup) Loop { return do(newTimed(s)) }),
			bareCall(),
			peer("gobreaker, rolling", "", func(*Setup) Loop { return gobreakerLoop(newRollingGobreaker()) }),
			peer("failsafe-go, permits", "by hand", func(*Setup) Loop { return failsafePermits(newFailsafeRateBreaker()) }),
			peer("failsafe-go, Get", "", func(*Setup) Loop { return failsafeGet(newFailsafeRateBreaker()) }),
		},
	}
}

func breakerSlow() Case {
	return Case{
		Key:   "breaker-slow",
		Title: "Closed breaker, with slow calls",
		About: "The circuit also opens when half of the calls in the window took longer than 1 s. " +
			"None of the peers that could be had knows slow calls; gobreaker without them is shown for scale.",
		Implementations: []Implementation{
			ours("holdfast", "last 100 calls", func(s *Setup) Loop {
				return do(withBreaker(s, breaker.FailureRate(failureRate, breaker.Last(windowCalls)),
					breaker.SlowCalls(slowerThan, failureRate, breaker.Last(windowCalls))))
			}),
			ours("holdfast, time window", "at least 100 calls within 10 s", func(s *Setup) Loop {
				return do(withBreaker(s, breaker.FailureRate(failureRate, breaker.Within(windowPeriod)),
					breaker.SlowCalls(slowerThan, failureRate, breaker.Within(windowPeriod)),
					breaker.MinimumCalls(minimumCalls)))
			}),
			bareCall(),
			yardstick("gobreaker, without slow calls", "", func(*Setup) Loop { return gobreakerLoop(newGobreaker()) }),
		},
	}
}

func breakerOpen() Case {
	return Case{
		Key:   "breaker-open",
		Title: "Open breaker's refusal",
		About: "The circuit is open and stays so. Ours and fortify's say why and for how long in an error of their own; the others return a constant.",
		Implementations: []Implementation{
			ours("holdfast", "", func(s *Setup) Loop { return opened(do(newConsecutive(s))) }),
			peer("gobreaker", "", func(*Setup) Loop { return opened(gobreakerLoop(newGobreaker())) }),
			peer("fortify", "", func(*Setup) Loop { return opened(fortifyLoop(newFortifyBreaker[*Result]())) }),
			peer("go-resiliency", "", func(*Setup) Loop { return opened(newResiliencyBreaker()) }),
			peer("failsafe-go, permits", "by hand", func(*Setup) Loop { return opened(failsafePermits(newFailsafeBreaker())) }),
			peer("failsafe-go, Get", "", func(*Setup) Loop { return opened(failsafeGet(newFailsafeBreaker())) }),
		},
	}
}

// opened trips the circuit before it hands out the loop.
func opened(loop Loop) Loop {
	loop(failuresInARow, Fail())
	return loop
}

func newBreaker(trip ...breaker.Option) *breaker.Breaker {
	return breaker.New("bench", append(trip, breaker.OpenFor(openFor))...)
}

func withBreaker(s *Setup, trip ...breaker.Option) *holdfast.Pipeline {
	if s.Breaker != nil {
		return holdfast.Compose(s.Breaker)
	}
	return holdfast.Compose(newBreaker(trip...))
}

func newConsecutive(s *Setup) *holdfast.Pipeline {
	return withBreaker(s, breaker.ConsecutiveFailures(failuresInARow))
}

func newTimed(s *Setup) *holdfast.Pipeline {
	return withBreaker(s, TimeWindow()...)
}

// TimeWindow is how a breaker of ours is set where its window is one of time.
func TimeWindow() []breaker.Option {
	return []breaker.Option{
		breaker.FailureRate(failureRate, breaker.Within(windowPeriod)),
		breaker.MinimumCalls(minimumCalls),
	}
}

// allowLoop is the loop of a breaker of ours by hand.
func allowLoop(b *breaker.Breaker) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = allowed(b, w)
		}
		return v, err
	}
}

func allowed(b *breaker.Breaker, w Work) (*Result, error) {
	report, err := b.Allow()
	if err != nil {
		return nil, err
	}
	v, err := w.Do(w.Context)
	report(policy.DefaultClassifier(v, err))
	return v, err
}

func newFailsafeCountBreaker() failsafebreaker.CircuitBreaker[*Result] {
	return failsafebreaker.NewBuilder[*Result]().
		WithFailureThresholdRatio(windowFailures, windowCalls).WithDelay(openFor).Build()
}

// oneWord counts failures in a row, and nothing else: what a consecutive breaker costs
// at the least. It never recovers.
type oneWord struct{ failures atomic.Int64 }

func (b *oneWord) loop(n int, w Work) (v *Result, err error) {
	for range n {
		v, err = b.call(w.Context, w.Do)
	}
	return v, err
}

func (b *oneWord) call(ctx context.Context, fn func(context.Context) (*Result, error)) (*Result, error) {
	failures := b.failures.Load()
	if failures >= failuresInARow {
		return nil, errRefused
	}
	v, err := fn(ctx)
	if err != nil {
		b.failures.Add(1)
	} else if failures != 0 {
		b.failures.Store(0)
	}
	return v, err
}
