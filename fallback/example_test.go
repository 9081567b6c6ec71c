package fallback_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fallback"
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
