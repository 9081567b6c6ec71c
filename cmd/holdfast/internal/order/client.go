package order

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/loopback"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// client talks to Payment, bare: the pipelines go around its methods.
type client struct {
	http *http.Client
	base string
}

// statusError is an answer of Payment that is no receipt.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("status %d %s", e.code, http.StatusText(e.code))
}

// charge asks Payment to take the money for an order.
func (c *client) charge(ctx context.Context, order string) (payment.Receipt, error) {
	return c.do(ctx, http.MethodPost, order)
}

// ask asks Payment whether an order was paid.
func (c *client) ask(ctx context.Context, order string) (payment.Receipt, error) {
	return c.do(ctx, http.MethodGet, order)
}

func (c *client) do(ctx context.Context, method, order string) (payment.Receipt, error) {
	var receipt payment.Receipt
	code, err := loopback.Call(ctx, c.http, method, c.base+"/payments/"+url.PathEscape(order), &receipt)
	if err != nil {
		return payment.Receipt{}, err
	}
	if code != http.StatusOK {
		return payment.Receipt{}, &statusError{code}
	}
	return receipt, nil
}
