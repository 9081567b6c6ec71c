package scenario

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/ratelimit"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/order"
)

// A protection makes the policies around each charge.
type protection func(Pace) holdfast.Layers

// The protections, from a timeout alone to everything. Each call makes new policies:
// no state is left over from the scenario before.

func timeoutOnly(p Pace) holdfast.Layers {
	return holdfast.Layers{Timeout: timeout.New(p.Of(time.Second))}
}

func timeoutAndBreaker(p Pace) holdfast.Layers {
	l := timeoutOnly(p)
	l.Breaker = halfOf(5, p)
	return l
}

// hairTrigger judges from the first call on.
func hairTrigger(p Pace) holdfast.Layers {
	l := timeoutOnly(p)
	l.Breaker = halfOf(1, p)
	return l
}

// halfOf opens for 5 s when half of at least minimum calls within 10 s have failed.
func halfOf(minimum int, p Pace) *breaker.Breaker {
	return breaker.New("payment",
		breaker.FailureRate(0.5, breaker.Within(p.Of(10*time.Second))),
		breaker.MinimumCalls(minimum),
		breaker.OpenFor(p.Of(5*time.Second)),
	)
}

func withBulkhead(limit int) protection {
	return func(p Pace) holdfast.Layers {
		l := timeoutAndBreaker(p)
		l.Bulkhead = bulkhead.New(limit)
		return l
	}
}

// A retry repeats a charge only where Order sends an Idempotency-Key, or has been told to
// repeat everything: see [Part].

func retryOnly(p Pace) holdfast.Layers {
	l := timeoutOnly(p)
	l.Retry = threeAttempts(p)
	return l
}

func retryAndBreaker(p Pace) holdfast.Layers {
	l := timeoutAndBreaker(p)
	l.Retry = threeAttempts(p)
	return l
}

func threeAttempts(p Pace) *retry.Retry {
	return retry.New(
		retry.Attempts(3),
		retry.Exponential(p.Of(100*time.Millisecond), p.Of(time.Second)),
	)
}

// threeInARow is the breaker of the timeline.
func threeInARow(p Pace) holdfast.Layers {
	l := timeoutOnly(p)
	l.Breaker = breaker.New("payment",
		breaker.ConsecutiveFailures(3),
		breaker.OpenFor(p.Of(2*time.Second)),
	)
	return l
}

// everything is the full pipeline, in the documented order.
func everything(p Pace) holdfast.Layers {
	return holdfast.Layers{
		Name:      "payment",
		Timeout:   timeout.New(p.Of(time.Second)),
		Bulkhead:  bulkhead.New(20),
		RateLimit: ratelimit.New(ratelimit.Per(200, p.Of(time.Second)), 20),
		Breaker: breaker.New("payment",
			breaker.FailureRate(0.5, breaker.Last(10)),
			breaker.OpenFor(p.Of(time.Second)),
		),
		Retry:    threeAttempts(p),
		Total:    timeout.New(p.Of(5*time.Second), timeout.Name("total")),
		Fallback: fallback.Func(order.FallBack),
	}
}

// asking is around the question whether an order was paid. Reading may be retried.
func asking(p Pace) holdfast.Layers {
	return holdfast.Layers{
		Timeout: timeout.New(p.Of(time.Second)),
		Breaker: breaker.New("payment-status"),
		Retry:   threeAttempts(p),
	}
}
