package order

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"

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
