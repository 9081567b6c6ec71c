package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	failsafebreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/cases"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/ratelimit"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
	"github.com/sony/gobreaker/v2"
)

// Memory is what one thing keeps on the heap.
type Memory struct {
	Name string
	Idle float64 // bytes, just made
	Used float64 // bytes, after calls of which every tenth failed; 0: not looked at
}

// How many are made to weigh one, and how many calls each gets.
const (
	weighed = 500
	calls   = 2_000
	many    = 100_000
)

// Memories weighs policies, pipelines and peers.
func Memories() []Memory {
	return []Memory{
		ourBreaker("breaker, consecutive", breaker.ConsecutiveFailures(calls)),
		ourBreaker("breaker, last 100 calls", breaker.FailureRate(0.5, breaker.Last(100))),
		ourBreaker("breaker, last 1000 calls", breaker.FailureRate(0.5, breaker.Last(1000))),
		ourBreaker("breaker, within 10 s", breaker.FailureRate(0.5, breaker.Within(10*time.Second))),
		ourBreaker("breaker, within 1 h", breaker.FailureRate(0.5, breaker.Within(time.Hour))),
		ourBreaker("breaker, within 10 s, slow calls too",
			breaker.FailureRate(0.5, breaker.Within(10*time.Second)),
			breaker.SlowCalls(time.Second, 0.5, breaker.Within(10*time.Second))),
		weigh("gobreaker, consecutive", newGobreaker(gobreaker.Settings{}), useGobreaker),
		weigh("gobreaker, rolling within 10 s", newGobreaker(gobreaker.Settings{
			Interval: 10 * time.Second, BucketPeriod: time.Second,
			ReadyToTrip: func(gobreaker.Counts) bool { return false },
		}), useGobreaker),
		weigh("failsafe-go, last 100 calls", newFailsafe(func(b failsafeBuilder) { b.WithFailureThresholdRatio(50, 100) }), useFailsafe),
		weigh("failsafe-go, within 10 s", newFailsafe(func(b failsafeBuilder) {
			b.WithFailureRateThreshold(0.5, 100, 10*time.Second)
		}), useFailsafe),
		weigh("bulkhead of 100", func() *bulkhead.Bulkhead { return bulkhead.New(100) }, nil),
		weigh("rate limiter", func() *ratelimit.Limiter { return ratelimit.New(ratelimit.Per(100, time.Second), 100) }, nil),
		weigh("retry", func() *retry.Retry { return retry.New() }, nil),
		weigh("timeout", func() *timeout.Timeout { return timeout.New(time.Second) }, nil),
		weigh("the full pipeline, breaker and bulkhead included", func() *holdfast.Pipeline {
			return holdfast.Compose(timeout.New(time.Second), bulkhead.New(100),
				breaker.New("bench", cases.TimeWindow()...), retry.New())
		}, nil),
		weigh("a pipeline of policies that are there already", sharing(), nil),
	}
}

// ManyBreakers is the heap of 100 000 breakers with a time window, and how many they are.
func ManyBreakers() (bytes float64, n int) {
	i := 0
	each := measure.Retained(many, func() *breaker.Breaker {
		i++
		return breaker.New(fmt.Sprintf("host-%06d", i), cases.TimeWindow()...)
	}, nil)
	return each * many, many
}

func weigh[T any](name string, build func() T, use func(T)) Memory {
	m := Memory{Name: name, Idle: measure.Retained(weighed, build, nil)}
	if use != nil {
		m.Used = measure.Retained(weighed, build, use)
	}
	return m
}

// outcome fails now and then, too rarely to trip anything.
func outcome() error {
	if rand.IntN(10) == 0 {
		return cases.ErrWork
	}
	return nil
}

func ourBreaker(name string, trip ...breaker.Option) Memory {
	return weigh("holdfast "+name, func() *breaker.Breaker { return breaker.New("bench", trip...) }, func(b *breaker.Breaker) {
		p := holdfast.Compose(b)
		for range calls {
			_ = holdfast.Run(context.Background(), p, func(context.Context) error { return outcome() })
		}
	})
}

func newGobreaker(s gobreaker.Settings) func() *gobreaker.CircuitBreaker[*cases.Result] {
	return func() *gobreaker.CircuitBreaker[*cases.Result] { return gobreaker.NewCircuitBreaker[*cases.Result](s) }
}

func useGobreaker(b *gobreaker.CircuitBreaker[*cases.Result]) {
	for range calls {
		_, _ = b.Execute(func() (*cases.Result, error) { return nil, outcome() })
	}
}

type (
	failsafeBreaker = failsafebreaker.CircuitBreaker[*cases.Result]
	failsafeBuilder = failsafebreaker.Builder[*cases.Result]
)

func newFailsafe(set func(failsafeBuilder)) func() failsafeBreaker {
	return func() failsafeBreaker {
		b := failsafebreaker.NewBuilder[*cases.Result]()
		set(b)
		return b.Build()
	}
}

func useFailsafe(b failsafeBreaker) {
	for range calls {
		b.TryAcquirePermit()
		b.RecordError(outcome())
	}
}

func sharing() func() *holdfast.Pipeline {
	limit, slots := timeout.New(time.Second), bulkhead.New(100)
	circuit, again := breaker.New("bench", cases.TimeWindow()...), retry.New()
	return func() *holdfast.Pipeline { return holdfast.Compose(limit, slots, circuit, again) }
}
