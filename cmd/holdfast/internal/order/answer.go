package order

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/policy"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
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

// FallBack answers for a charge that failed: it is pending, and the shop will see to
// it. It is meant for fallback.Func.
func FallBack(_ context.Context, err error) (*Answer, error) {
	return &Answer{Status: Pending, Reason: err.Error(), Fallback: true}, nil
}

// Outcome says what the end of a charge tells about Payment's health: its 4xx say that
// the request was wrong, not that Payment is. It is meant for breaker.Classify.
func Outcome(_ any, err error) policy.Outcome {
	if status, ok := errors.AsType[*statusError](err); ok && status.code < http.StatusInternalServerError {
		return policy.Ignored
	}
	return policy.DefaultClassifier(nil, err)
}

// paid makes the customer's answer of Payment's.
func paid(r payment.Receipt) *Answer {
	return &Answer{Status: r.Status, Repeated: r.Repeated}
}

// tries is what is known of an order's calls to Payment.
type tries struct {
	calls      int
	unanswered int // those that Payment has not answered: it may have charged, or yet will
}

func (t *tries) add(err error) {
	t.calls++
	if _, answered := errors.AsType[*statusError](err); err != nil && !answered {
		t.unanswered++
	}
}

// unpaid is the answer where no receipt came. What is not known is not called a
// failure: that is only what Payment itself has said no to.
func (t *tries) unpaid(err error) (code int, a *Answer) {
	switch {
	case t.calls == 0:
		return http.StatusAccepted, &Answer{Status: Pending, Reason: fmt.Sprintf("Payment was not asked: %v", err)}
	case t.unanswered > 0:
		return http.StatusAccepted, &Answer{Status: Pending, Reason: fmt.Sprintf("Payment has not confirmed: %v", err)}
	default:
		return http.StatusBadGateway, &Answer{Status: Failed, Reason: fmt.Sprintf("Payment failed: %v", err)}
	}
}

// retryAfter tells clients, in whole seconds rounded up, when it is worth to ask again.
func retryAfter(h http.Header, err error) {
	if wait, ok := policy.RetryAfter(err); ok {
		h.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
}
