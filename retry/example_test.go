package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"
)

func Example() {
	pipeline := holdfast.Compose(
		retry.New(
			retry.Attempts(4),
			retry.Exponential(50*time.Millisecond, 2*time.Second),
			retry.MaxElapsed(10*time.Second),
		),
	)
	price, err := holdfast.Do(context.Background(), pipeline, func(ctx context.Context) (int, error) {
		return 42, nil // ask the price service
	})
	fmt.Println(price, err)
	// Output: 42 <nil>
}

func ExamplePermanent() {
	errNotFound := errors.New("no such order")
	pipeline := holdfast.Compose(retry.New())
	err := holdfast.Run(context.Background(), pipeline, func(context.Context) error {
		fmt.Println("asked")
		return retry.Permanent(errNotFound) // it will not be there in 100ms either
	})
	fmt.Println(err, errors.Is(err, errNotFound))
	// Output:
	// asked
	// no such order true
}

func ExampleIf() {
	unavailable := policy.Classify(func(status int, err error) policy.Outcome {
		if status == 503 {
			return policy.Failure
		}
		return policy.DefaultClassifier(status, err)
	})
	pipeline := holdfast.Compose(retry.New(retry.If(unavailable), retry.Constant(0)))
	status, err := holdfast.Do(context.Background(), pipeline, func(ctx context.Context) (int, error) {
		if retry.AttemptFrom(ctx) < 3 {
			return 503, nil
		}
		return 200, nil
	})
	fmt.Println(status, err)
	// Output: 200 <nil>
}

func ExampleOnRetry() {
	pipeline := holdfast.Compose(retry.New(
		retry.Constant(0),
		retry.OnRetry(func(_ context.Context, a retry.Attempt) {
			fmt.Printf("attempt %d: %v, the next in %v\n", a.Number, a.Err, a.Delay)
		}),
	))
	err := holdfast.Run(context.Background(), pipeline, func(context.Context) error {
		return errors.New("connection refused")
	})
	fmt.Println(errors.Is(err, retry.ErrExhausted))
	// Output:
	// attempt 1: connection refused, the next in 0s
	// attempt 2: connection refused, the next in 0s
	// true
}

func ExampleExhaustedError() {
	pipeline := holdfast.Compose(retry.New(retry.Constant(time.Minute), retry.MaxElapsed(time.Second)))
	err := holdfast.Run(context.Background(), pipeline, func(context.Context) error {
		return errors.New("connection refused")
	})
	if e, ok := errors.AsType[*retry.ExhaustedError](err); ok {
		fmt.Println(e.Attempts, "attempt, the last:", e.Last)
		fmt.Println("given up for", e.Cause)
	}
	// Output:
	// 1 attempt, the last: connection refused
	// given up for retry: the next wait would pass the elapsed time allowed
}

func ExampleBackoff() {
	pipeline := holdfast.Compose(retry.New(
		retry.Attempts(100),
		retry.Backoff(func() backoff.BackOff { // a fresh one for each call
			return backoff.WithMaxRetries(&backoff.ZeroBackOff{}, 1)
		}),
	))
	err := holdfast.Run(context.Background(), pipeline, func(ctx context.Context) error {
		return fmt.Errorf("attempt %d failed", retry.AttemptFrom(ctx))
	})
	fmt.Println(errors.Is(err, retry.ErrStopped))
	// Output: true
}

func ExampleAttemptFrom() {
	pipeline := holdfast.Compose(retry.New(retry.Constant(0)))
	_ = holdfast.Run(context.Background(), pipeline, func(ctx context.Context) error {
		fmt.Println("X-Attempt:", retry.AttemptFrom(ctx))
		return errors.New("connection refused")
	})
	// Output:
	// X-Attempt: 1
	// X-Attempt: 2
	// X-Attempt: 3
}
