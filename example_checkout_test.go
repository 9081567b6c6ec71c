package holdfast_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// NewPayments is called once, where the application is put together.
func NewPayments() *holdfast.Pipeline {
	return holdfast.Layers{
		Timeout:  timeout.New(time.Second),                          // each attempt
		Bulkhead: bulkhead.New(20),                                  // attempts at once
		Breaker:  breaker.New("payments"),                           // one per dependency
		Retry:    retry.New(retry.Attempts(3)),                      // with backoff and jitter
		Total:    timeout.New(5*time.Second, timeout.Name("total")), // retries and waits included
	}.Compose()
}

// Charge is called for every order.
func (s *Shop) Charge(ctx context.Context, order string) (*Receipt, error) {
	return holdfast.Do(ctx, s.payments, func(ctx context.Context) (*Receipt, error) {
		return s.client.Charge(ctx, order) // with this ctx: the attempt's
	})
}

func Example() {
	shop := &Shop{payments: NewPayments()}
	receipt, err := shop.Charge(context.Background(), "order-7")
	fmt.Println(receipt.ID, err)
	fmt.Println(shop.payments)
	// Output:
	// r-7 <nil>
	// timeout(5s) → retry(attempts=3) → breaker("payments") → bulkhead(20) → timeout(1s) → call
}

type Shop struct {
	payments *holdfast.Pipeline
	client   Client
}

type Receipt struct{ ID string }

// Client stands for what asks the dependency.
type Client struct{}

func (Client) Charge(context.Context, string) (*Receipt, error) { return &Receipt{"r-7"}, nil }
