package order

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// What an order's payment can be, besides payment.Paid.
const (
	Pending = "PAYMENT_PENDING" // not known, or not tried yet
	Failed  = "PAYMENT_FAILED"  // Payment said no
)

// An Answer is what the customer is told about an order.
type Answer struct {
	OrderID  string `json:"orderId"`
	Status   string `json:"status"`
	Reason   string `json:"reason,omitempty"`   // why it is not paid
	Repeated bool   `json:"repeated,omitempty"` // it had been paid before
	Fallback bool   `json:"fallback,omitempty"` // a fallback answered
	Calls    int    `json:"calls"`              // to Payment, for this order; 0: refused here
}

// FallBack answers in Payment's place for a charge that failed: it is pending, and the
// shop will see to it. It is meant for fallback.Func, under an http.Client.
func FallBack(_ context.Context, err error) (*http.Response, error) {
	reason := "Payment fails"
	if err != nil { // or else an answer of Payment's was called a failure
		reason = err.Error()
	}
	body, err := json.Marshal(Answer{Status: Pending, Reason: reason, Fallback: true})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode:    http.StatusAccepted,
		ContentLength: int64(len(body)),
		Body:          io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// tries is what is known of an order's calls to Payment. Attempts run one after another,
// on the goroutine that asked.
type tries struct {
	calls  int
	denied int // those that Payment said no to; of any other it may have charged, or yet will
}

type triesKey struct{}

// counting returns a context whose calls to Payment are counted.
func counting(ctx context.Context) (context.Context, *tries) {
	t := &tries{}
	return context.WithValue(ctx, triesKey{}, t), t
}

func triesOf(ctx context.Context) *tries { return ctx.Value(triesKey{}).(*tries) }

// add counts a call that ended so. A gateway that lost Payment's answer does not know
// what it was.
func (t *tries) add(resp *http.Response, err error) {
	t.calls++
	if err == nil && resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusGatewayTimeout {
		t.denied++
	}
}

// unpaid is the answer where no receipt came. What is not known is not called a
// failure: that is only what Payment itself has said no to.
func (t *tries) unpaid(err error) (code int, a *Answer) {
	err = why(err)
	switch {
	case t.calls == 0:
		return http.StatusAccepted, &Answer{Status: Pending, Reason: fmt.Sprintf("Payment was not asked: %v", err)}
	case t.denied < t.calls:
		return http.StatusAccepted, &Answer{Status: Pending, Reason: fmt.Sprintf("Payment has not confirmed: %v", err)}
	default:
		return http.StatusBadGateway, &Answer{Status: Failed, Reason: fmt.Sprintf("Payment failed: %v", err)}
	}
}

// why is err without what http.Client says around it: Payment's address is no business of
// the customer's.
func why(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// retryAfter tells clients, in whole seconds rounded up, when it is worth to ask again,
// if err is a refusal by a policy that knows: http.Client's error does not hide it.
func retryAfter(h http.Header, err error) {
	if wait, ok := policy.RetryAfter(err); ok {
		h.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
}
