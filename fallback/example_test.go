package fallback_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/policy"
)

func Example() {
	pipeline := holdfast.Compose(
		fallback.Func(func(_ context.Context, err error) (string, error) {
			return "yesterday's prices", nil
		}),
	)
	prices, err := holdfast.Do(context.Background(), pipeline, func(context.Context) (string, error) {
		return "", errors.New("connection refused")
	})
	fmt.Println(prices, err)
	// Output: yesterday's prices <nil>
}

func ExampleValue() {
	pipeline := holdfast.Compose(fallback.Value([]string{}))
	recommended, err := holdfast.Do(context.Background(), pipeline, func(context.Context) ([]string, error) {
		return nil, errors.New("connection refused")
	})
	fmt.Println(recommended, err)
	// Output: [] <nil>
}

func ExampleIf() {
	errNoSuchItem := errors.New("no such item")
	pipeline := holdfast.Compose(
		fallback.Value(0, fallback.If(policy.IgnoreErrors(errNoSuchItem))),
	)
	_, err := holdfast.Do(context.Background(), pipeline, func(context.Context) (int, error) {
		return 0, errNoSuchItem // an answer, which nothing should replace
	})
	fmt.Println(err)
	// Output: no such item
}
