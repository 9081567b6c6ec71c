package order

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

func TestAnswers(t *testing.T) {
	opened := func() *breaker.Breaker {
		b := breaker.New("payment", breaker.OpenFor(1500*time.Millisecond), breaker.ConsecutiveFailures(1))
		done, _ := b.Allow()
		done(policy.Failure)
		return b
	}
	full := func() *bulkhead.Bulkhead {
		b := bulkhead.New(1)
		_, _ = b.Acquire(t.Context())
		return b
	}
	twice := func() *retry.Retry { return retry.New(retry.Attempts(2), retry.Constant(0)) }
	keyed := []holdfasthttp.Option{holdfasthttp.IdempotencyKey(Key)}
	tests := []struct {
		name       string
		layers     holdfast.Layers
		options    []holdfasthttp.Option
		payment    http.HandlerFunc
		wantCode   int
		want       Answer
		wantReason string
	}{
		{
			"paid",
			holdfast.Layers{},
			nil,
			answerPaid,
			200,
			Answer{Status: payment.Paid, Calls: 1},
			"",
		},
		{
			"down, naive",
			holdfast.Layers{},
			nil,
			answerCode(500),
			502,
			Answer{Status: Failed, Calls: 1},
			"Payment failed: status 500 Internal Server Error",
		},
		{
			"no answer",
			holdfast.Layers{},
			nil,
			drop,
			202,
			Answer{Status: Pending, Calls: 1},
			"Payment has not confirmed: ",
		},
		{
			"timed out",
			holdfast.Layers{Timeout: timeout.New(20 * time.Millisecond)},
			nil,
			hang,
			202,
			Answer{Status: Pending, Calls: 1},
			"Payment has not confirmed: ",
		},
		{
			"circuit open",
			holdfast.Layers{Breaker: opened()},
			nil,
			answerPaid,
			202,
			Answer{Status: Pending},
			`Payment was not asked: breaker "payment": circuit open`,
		},
		{
			"bulkhead full",
			holdfast.Layers{Bulkhead: full()},
			nil,
			answerPaid,
			202,
			Answer{Status: Pending},
			"Payment was not asked: bulkhead",
		},
		{
			"all attempts failed",
			holdfast.Layers{Retry: twice()},
			keyed,
			answerCode(500),
			502,
			Answer{Status: Failed, Calls: 2},
			"Payment failed: ",
		},
		{
			"one attempt not answered",
			holdfast.Layers{Retry: twice()},
			keyed,
			failFirst(),
			202,
			Answer{Status: Pending, Calls: 2},
			"Payment has not confirmed: ",
		},
		{
			"failed, then refused",
			holdfast.Layers{Retry: twice(), Breaker: breaker.New("payment", breaker.ConsecutiveFailures(1))},
			keyed,
			answerCode(500),
			502,
			Answer{Status: Failed, Calls: 1},
			"Payment failed: ",
		},
		{
			"fallback",
			holdfast.Layers{Fallback: fallback.Func(FallBack)},
			nil,
			answerCode(500),
			202,
			Answer{Status: Pending, Fallback: true, Calls: 1},
			"Payment fails",
		},
		{
			"not repeated without a key",
			holdfast.Layers{Retry: twice()},
			nil,
			answerCode(500),
			502,
			Answer{Status: Failed, Calls: 1},
			"Payment failed: status 500 Internal Server Error",
		},
		{
			"repeated without a key, as told",
			holdfast.Layers{Retry: twice()},
			[]holdfasthttp.Option{holdfasthttp.RetryAll()},
			answerCode(500),
			502,
			Answer{Status: Failed, Calls: 2},
			"Payment failed: status 500 Internal Server Error",
		},
		{
			"the answer was lost on the way",
			holdfast.Layers{},
			nil,
			answerCode(504),
			202,
			Answer{Status: Pending, Calls: 1},
			"Payment has not confirmed: status 504 Gateway Timeout",
		},
		{
			"an answer that is none",
			holdfast.Layers{},
			nil,
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
			202,
			Answer{Status: Pending, Calls: 1},
			"Payment has not confirmed: answer 200 is not the JSON expected: ",
		},
		{
			"fallback for a refusal",
			holdfast.Layers{Breaker: opened(), Fallback: fallback.Func(FallBack)},
			nil,
			answerPaid,
			202,
			Answer{Status: Pending, Fallback: true},
			`breaker "payment": circuit open`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, h := start(t, Config{Charge: tt.layers, ChargeOptions: tt.options}, tt.payment)
			w, got := post(h, "/orders/order-1")
			if w.Code != tt.wantCode {
				t.Errorf("code %d, want %d", w.Code, tt.wantCode)
			}
			if !strings.HasPrefix(got.Reason, tt.wantReason) || tt.wantReason == "" && got.Reason != "" {
				t.Errorf("reason %q, want %q…", got.Reason, tt.wantReason)
			}
			tt.want.OrderID, got.Reason = "order-1", ""
			if got != tt.want {
				t.Errorf("answer %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	b := breaker.New("payment", breaker.OpenFor(1500*time.Millisecond), breaker.ConsecutiveFailures(1))
	_, h := start(t, Config{Charge: holdfast.Layers{Breaker: b}}, answerCode(500))
	if w, _ := post(h, "/orders/a"); w.Header().Get("Retry-After") != "" {
		t.Errorf("Retry-After %q of a failure, want none", w.Header().Get("Retry-After"))
	}
	if w, _ := post(h, "/orders/b"); w.Header().Get("Retry-After") != "2" {
		t.Errorf("Retry-After %q, want 2: seconds, rounded up", w.Header().Get("Retry-After"))
	}
}

// The key is the order, in every attempt of its charge.
func TestKey(t *testing.T) {
	var keys []string
	_, h := start(t, Config{
		Charge:        holdfast.Layers{Retry: retry.New(retry.Attempts(2), retry.Constant(0))},
		ChargeOptions: []holdfasthttp.Option{holdfasthttp.IdempotencyKey(Key)},
	}, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		answerCode(500)(w, r)
	})
	post(h, "/orders/a")
	post(h, "/orders/b%2Fc%0A") // whose name could not be sent in a header as it is
	if want := []string{"a", "a", "b%2Fc%0A", "b%2Fc%0A"}; !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
}
