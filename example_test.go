package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

type receipt struct{ ID string }

// client stands for what asks the dependency.
var client = struct {
	Charge func(ctx context.Context, order string) (*receipt, error)
}{
	Charge: func(context.Context, string) (*receipt, error) { return &receipt{"r-1"}, nil },
}

// Once per dependency, where the application is put together.
var payments = holdfast.Layers{
	Timeout:  timeout.New(time.Second),                          // each attempt
	Bulkhead: bulkhead.New(20),                                  // attempts at once
	Breaker:  breaker.New("payments"),                           // shared by all pipelines that call payments
	Retry:    retry.New(retry.Attempts(3)),                      // with backoff and jitter
	Total:    timeout.New(5*time.Second, timeout.Name("total")), // retries and waits included
}.Compose()

// For every call.
func charge(ctx context.Context, order string) (*receipt, error) {
	return holdfast.Do(ctx, payments, func(ctx context.Context) (*receipt, error) {
		return client.Charge(ctx, order)
	})
}

func Example() {
	r, err := charge(context.Background(), "order-7")
	fmt.Println(r.ID, err)
	fmt.Println(payments)
	// Output:
	// r-1 <nil>
	// timeout(5s) → retry(attempts=3) → breaker("payments") → bulkhead(20) → timeout(1s) → call
}

func ExampleLayers() {
	pipeline := holdfast.Layers{
		Timeout: timeout.New(time.Second),
		Breaker: breaker.New("payments"),
		Retry:   retry.New(),
	}.Compose()
	fmt.Println(pipeline)
	// Output: retry(attempts=3) → breaker("payments") → timeout(1s) → call
}

func ExampleBuild() {
	_, err := holdfast.Build(retry.New(), breaker.New("payments"))
	fmt.Println(err)
	// Output: holdfast: Compose: retry(attempts=3) is inside breaker("payments"), which would not see its attempts, nor end them once it is open; write Compose(breaker("payments"), retry(attempts=3))
}

func ExamplePipeline_Advice() {
	pipeline := holdfast.Compose(breaker.New("payments"), bulkhead.New(20))
	for _, advice := range pipeline.Advice() {
		fmt.Println(advice)
	}
	// Output:
	// breaker("payments") has no timeout inside it: calls that hang are never counted.
	// bulkhead(20) is outside breaker("payments"): calls that the open circuit refuses take its slots.
}

func ExamplePipeline_Subscribe() {
	pipeline := holdfast.Compose(breaker.New("payments", breaker.ConsecutiveFailures(1))).Named("checkout")
	pipeline.Subscribe(policy.ObserverFunc(func(_ context.Context, e policy.Event) {
		fmt.Println(e.Kind, e.Pipeline, e.Name, e.Reason)
	}))

	holdfast.Run(context.Background(), pipeline, func(context.Context) error { return errDown })
	// Output:
	// circuit.state_changed  payments failures in a row: 1
	// call.done checkout
}

// The errors of a pipeline, told apart.
func Example_errors() {
	pipeline := holdfast.Compose(
		breaker.New("payments", breaker.ConsecutiveFailures(2)),
		retry.New(retry.Attempts(2), retry.Constant(0), retry.Clock(policytest.NewClock(time.Time{}))),
	)
	for range 2 {
		err := holdfast.Run(context.Background(), pipeline, func(context.Context) error {
			return errDown
		})
		switch {
		case errors.Is(err, breaker.ErrOpen):
			fmt.Println("payments are down, we are not even asking")
		case errors.Is(err, timeout.ErrExceeded):
			fmt.Println("payments did not answer in time: pending, not failed")
		case errors.Is(err, retry.ErrExhausted):
			fmt.Println("payments failed, several times:", err)
		}
	}
	// Output:
	// payments failed, several times: retry "retry": gave up after 2 attempts in 0s: down
	// payments are down, we are not even asking
}

func Example_rejected() {
	clock := policytest.NewClock(time.Time{})
	down := breaker.New("payments", breaker.Clock(clock), breaker.ConsecutiveFailures(1))
	pipeline := holdfast.Compose(down)
	holdfast.Run(context.Background(), pipeline, func(context.Context) error { return errDown })

	err := holdfast.Run(context.Background(), pipeline, func(context.Context) error { return nil })
	if policy.Rejected(err) {
		wait, known := policy.RetryAfter(err)
		fmt.Println("not sent; try again in", wait, known)
	}
	// Output: not sent; try again in 30s true
}

// TestCheckout is how a user proves a composition.
func TestCheckout(t *testing.T) {
	tests := []struct {
		name  string
		steps []policytest.Step
		calls int
		took  time.Duration
		err   error
	}{
		{"a blip", []policytest.Step{policytest.Fail(errDown), policytest.Return("paid")}, 2, time.Second, nil},
		{"an outage", []policytest.Step{policytest.Fail(errDown)}, 3, 2 * time.Second, retry.ErrExhausted},
		{"a hang", []policytest.Step{policytest.Block()}, 3, 5 * time.Second, timeout.ErrExceeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // time flies
				pipeline := holdfast.Compose(
					timeout.New(time.Second),
					breaker.New("payments"),
					retry.New(retry.Constant(time.Second)),
				)
				dependency, start := policytest.Script(tt.steps...), time.Now()
				_, err := holdfast.Do(t.Context(), pipeline, dependency.Invoke)
				if !errors.Is(err, tt.err) || dependency.Calls() != tt.calls || time.Since(start) != tt.took {
					t.Errorf("%v after %d calls in %s", err, dependency.Calls(), time.Since(start))
				}
			})
		})
	}
}
