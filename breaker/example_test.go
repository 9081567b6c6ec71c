package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

func Example() {
	payments := breaker.New("payments",
		breaker.FailureRate(0.5, breaker.Last(10)), // half of the last ten calls
		breaker.OpenFor(5*time.Second),
	)
	pipeline := holdfast.Compose(payments)

	for range 20 {
		holdfast.Run(context.Background(), pipeline, func(context.Context) error {
			return errors.New("connection refused")
		})
	}
	fmt.Println(payments.State(), payments.Stats().Rejected)
	// Output: open 10
}

func ExampleCircuitOpenError() {
	payments := breaker.New("payments", breaker.ConsecutiveFailures(1), breaker.Clock(policytest.NewClock(time.Time{})))
	pipeline := holdfast.Compose(payments)
	holdfast.Run(context.Background(), pipeline, func(context.Context) error { return errors.New("down") })

	err := holdfast.Run(context.Background(), pipeline, func(context.Context) error { return nil })
	if open, ok := errors.AsType[*breaker.CircuitOpenError](err); ok {
		fmt.Printf("%s is %s, try again in %s\n", open.Name, open.State, open.RetryIn)
	}
	// Output: payments is open, try again in 30s
}

func ExampleClassify() {
	type response struct{ status int }
	payments := breaker.New("payments",
		breaker.Classify(policy.Classify(func(r *response, err error) policy.Outcome {
			switch {
			case err != nil:
				return policy.Failure
			case r.status == 404: // says nothing about the service's health
				return policy.Ignored
			case r.status >= 500:
				return policy.Failure
			}
			return policy.Success
		})),
	)
	pipeline := holdfast.Compose(payments)

	for _, status := range []int{404, 503, 200, 503} {
		holdfast.Do(context.Background(), pipeline, func(context.Context) (*response, error) {
			return &response{status}, nil
		})
	}
	fmt.Println(payments.Stats().ConsecutiveFailures)
	// Output: 1
}

func ExampleBreaker_Allow() {
	payments := breaker.New("payments")

	done, err := payments.Allow()
	if err != nil {
		return // refused
	}
	connected := true
	if connected {
		done(policy.Success)
	} else {
		done(policy.Failure)
	}
	fmt.Println(payments.State())
	// Output: closed
}

func ExampleBreaker_Isolate() {
	payments := breaker.New("payments")

	release := payments.Isolate()
	fmt.Println(payments.State())
	release()
	fmt.Println(payments.State())
	// Output:
	// isolated
	// closed
}

func ExampleOnStateChange() {
	breaker.New("payments", breaker.ConsecutiveFailures(1),
		breaker.OnStateChange(func(t breaker.Transition) {
			fmt.Printf("%s: %s → %s: %s\n", t.Breaker, t.From, t.To, t.Reason)
		}),
	).Wrap(policy.Invoke)(context.Background(), policytest.Script(policytest.Fail(errors.New("down"))))
	// Output: payments: closed → open: failures in a row: 1
}
