package order

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/loopback"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs an order service against a Payment that answers as charge does.
func start(t *testing.T, c Config, charge http.HandlerFunc) (*Service, http.Handler) {
	t.Helper()
	server, err := loopback.Serve(0, charge)
	if err != nil {
		t.Fatal(err)
	}
	c.Payment = server.URL
	s := New(c)
	t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	return s, s.Handler()
}

func answerPaid(w http.ResponseWriter, r *http.Request) {
	order := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	loopback.Reply(w, 200, payment.Receipt{OrderID: order, Status: payment.Paid})
}

func answerCode(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { loopback.Reply(w, code, loopback.Problem{Error: "no"}) }
}

// hang answers when the caller has hung up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// drop hangs up without an answer.
func drop(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// failFirst fails the first request, then hangs up on every other.
func failFirst() http.HandlerFunc {
	var once sync.Once
	return func(w http.ResponseWriter, r *http.Request) {
		first := false
		once.Do(func() { first = true })
		if !first {
			drop(w, r)
		}
		answerCode(500)(w, r)
	}
}

func post(h http.Handler, path string) (*httptest.ResponseRecorder, Answer) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
	var a Answer
	_ = json.Unmarshal(w.Body.Bytes(), &a)
	return w, a
}

func get(h http.Handler, path string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

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

func TestOtherRoutes(t *testing.T) {
	_, h := start(t, Config{}, answerPaid)
	if code, body := get(h, "/data2"); code != 200 || body != `{"data":"needs no Payment"}` {
		t.Errorf("/data2: %d %s", code, body)
	}
	if code, body := get(h, "/orders/a/payment"); code != 200 || body != `{"orderId":"a","status":"PAID"}` {
		t.Errorf("payment: %d %s", code, body)
	}
	if code, body := get(h, "/admin/stats"); code != 200 || body != `{"waiting":0,"maxWaiting":0}` {
		t.Errorf("stats: %d %s", code, body)
	}
	if code, body := get(h, "/admin/breaker"); code != 404 || !strings.Contains(body, "no circuit breaker") {
		t.Errorf("breaker: %d %s", code, body)
	}
}

func TestAskingHasAPipelineOfItsOwn(t *testing.T) {
	ask := holdfast.Layers{Retry: retry.New(retry.Attempts(2), retry.Constant(0))}
	charge := holdfast.Layers{Breaker: breaker.New("payment", breaker.ConsecutiveFailures(1))}
	_, h := start(t, Config{Charge: charge, Ask: ask}, failFirst())
	if code, body := get(h, "/orders/a/payment"); code != 503 || !strings.Contains(body, "cannot ask Payment: retry") {
		t.Errorf("payment: %d %s, want 503 after two attempts", code, body)
	}
	if state := charge.Breaker.State(); state != breaker.Closed {
		t.Errorf("the charges' circuit is %v, want closed", state)
	}
}

func TestCircuit(t *testing.T) {
	b := breaker.New("payment", breaker.ConsecutiveFailures(2))
	_, h := start(t, Config{Charge: holdfast.Layers{Breaker: b}}, answerCode(500))
	for range 3 {
		post(h, "/orders/a")
	}
	code, body := get(h, "/admin/breaker")
	var c Circuit
	if err := json.Unmarshal([]byte(body), &c); code != 200 || err != nil {
		t.Fatalf("%d %s: %v", code, body, err)
	}
	if c.Name != "payment" || c.State != "open" || c.Openings != 1 || c.Rejected != 1 || c.RetryInMS <= 0 {
		t.Errorf("circuit %+v", c)
	}
	if len(c.Transitions) != 1 || c.Transitions[0].From != "closed" || c.Transitions[0].To != "open" || c.Transitions[0].Reason == "" {
		t.Errorf("transitions %+v", c.Transitions)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var h history
	for i := range remembered + 10 {
		h.Observe(t.Context(), policy.Event{Kind: policy.CircuitChanged, Time: time.Unix(int64(i), 0)})
		h.Observe(t.Context(), policy.Event{Kind: policy.CircuitRejected})
	}
	got := h.list()
	if len(got) != remembered || got[0].At.Unix() != 10 {
		t.Errorf("%d transitions, the first of second %d; want the last %d", len(got), got[0].At.Unix(), remembered)
	}
}

func TestGauges(t *testing.T) {
	const orders = 10
	arrived, release := make(chan struct{}, orders), make(chan struct{})
	s, h := start(t, Config{Charge: holdfast.Layers{Bulkhead: bulkhead.New(3)}}, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		answerPaid(w, r)
	})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { post(h, "/orders/a") })
	}
	for range 3 {
		<-arrived
	}
	for range 7 {
		post(h, "/orders/b") // refused: they wait, but are not in flight
	}
	if got := s.Stats(); got.Waiting != 3 || got.MaxWaiting != 4 {
		t.Errorf("stats %+v, want 3 waiting, 4 at most", got)
	}
	close(release)
	all.Wait()
	if got := s.Stats(); got.Waiting != 0 || s.MaxInFlight() != 3 {
		t.Errorf("afterwards %+v, %d in flight at most, want 0 waiting and 3", got, s.MaxInFlight())
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
