package bulkhead_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
)

func Example() {
	pipeline := holdfast.Compose(
		bulkhead.New(20, bulkhead.Name("payments"), bulkhead.MaxQueue(10), bulkhead.MaxWait(100*time.Millisecond)),
	)
	receipt, err := holdfast.Do(context.Background(), pipeline, func(context.Context) (string, error) {
		return "paid", nil
	})
	if errors.Is(err, bulkhead.ErrFull) {
		fmt.Println("too busy, come again")
	}
	fmt.Println(receipt, err)
	// Output: paid <nil>
}

func ExampleBulkhead_Acquire() {
	connections := bulkhead.New(1, bulkhead.Name("database"))
	release, err := connections.Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer release()

	_, err = connections.Acquire(context.Background())
	fmt.Println(err)
	// Output: bulkhead "database": full: 1 of 1 slots taken, 0 queued
}
