package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ratelimit"
)

func Example() {
	pipeline := holdfast.Compose(
		ratelimit.New(ratelimit.Per(100, time.Second), 20, ratelimit.Name("payments"), ratelimit.MaxWait(50*time.Millisecond)),
	)
	receipt, err := holdfast.Do(context.Background(), pipeline, func(context.Context) (string, error) {
		return "paid", nil
	})
	if exceeded, ok := errors.AsType[*ratelimit.ExceededError](err); ok {
		fmt.Println("come again in", exceeded.RetryIn)
	}
	fmt.Println(receipt, err)
	// Output: paid <nil>
}

func ExampleLimiter_Allow() {
	logs := ratelimit.New(ratelimit.Per(1, time.Minute), 2)
	for i := range 4 {
		if logs.Allow() {
			fmt.Println("line", i)
		}
	}
	// Output:
	// line 0
	// line 1
}

func ExampleLimiter_Wait() {
	pages := ratelimit.New(ratelimit.Per(1000, time.Second), 1)
	for page := range 3 {
		if err := pages.Wait(context.Background()); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("page", page)
	}
	// Output:
	// page 0
	// page 1
	// page 2
}
