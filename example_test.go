package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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
	pipeline := holdfast.Compose(breaker.New("payments", breaker.ConsecutiveFailures(1)))
	pipeline.Subscribe(policy.ObserverFunc(func(_ context.Context, e policy.Event) {
		fmt.Println(e.Kind, e.Policy, e.Name, e.Err)
	}))

	holdfast.Run(context.Background(), pipeline, func(context.Context) error { return errDown })
	// Output:
	// circuit.state_changed breaker payments <nil>
	// call.done   down
}

// An observer that logs. Package slog knows how to show events and descriptions.
func ExamplePipeline_Describe() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	pipeline := holdfast.Compose(timeout.New(time.Second), retry.New(retry.Attempts(2), retry.Constant(0))).Named("checkout")
	logger.Info("pipeline", "pipeline", pipeline.Describe())
	pipeline.Subscribe(policy.ObserverFunc(func(ctx context.Context, e policy.Event) {
		if e.Kind == policy.RetryScheduled {
			logger.WarnContext(ctx, "trouble", "event", e)
		}
	}))

	holdfast.Run(context.Background(), pipeline, func(context.Context) error { return errDown })
	// Output:
	// level=INFO msg=pipeline pipeline.kind=pipeline pipeline.name=checkout pipeline.layers.1.kind=retry pipeline.layers.1.name=retry pipeline.layers.1.attempts=2 pipeline.layers.1.backoff=constant pipeline.layers.1.base=0s pipeline.layers.1.max=0s pipeline.layers.1.jitter=none pipeline.layers.1.max_retry_after=1m0s pipeline.layers.1.classifier=false pipeline.layers.2.kind=timeout pipeline.layers.2.name=timeout pipeline.layers.2.limit=1s pipeline.layers.2.abandon=false
	// level=WARN msg=trouble event.kind=retry.scheduled event.policy=retry event.name=retry event.attempt=1 event.outcome=failure event.err=down
}

// withoutTime keeps the output of examples the same.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
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
