package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/timeout"
)

func Example() {
	pipeline := holdfast.Compose(
		timeout.New(10*time.Millisecond, timeout.Name("prices")),
	)
	_, err := holdfast.Do(context.Background(), pipeline, func(ctx context.Context) (string, error) {
		<-ctx.Done() // a slow answer, from a client that heeds its ctx
		return "", ctx.Err()
	})
	fmt.Println(errors.Is(err, timeout.ErrExceeded), errors.Is(err, context.DeadlineExceeded))
	fmt.Println(err)
	// Output:
	// true true
	// timeout "prices": limit of 10ms exceeded: context deadline exceeded
}

func ExampleAbandon() {
	hung := make(chan string)
	pipeline := holdfast.Compose(
		timeout.New(10*time.Millisecond, timeout.Abandon()),
	)
	_, err := holdfast.Do(context.Background(), pipeline, func(context.Context) (string, error) {
		return <-hung, nil // a client that knows no ctx
	})
	fmt.Println(err)
	close(hung)
	// Output: timeout "timeout": limit of 10ms exceeded
}

func ExampleLimitFunc() {
	type bulk struct{} // a key of the caller's
	limit := timeout.New(time.Second, timeout.LimitFunc(func(ctx context.Context) time.Duration {
		if ctx.Value(bulk{}) != nil {
			return time.Minute
		}
		return time.Second
	}))
	fmt.Println(holdfast.Compose(limit))
	// Output: timeout(per call) → call
}
