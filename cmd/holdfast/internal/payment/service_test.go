package payment

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const slow = 5 * time.Second

// call sends a request like "POST /payments/a" and returns the answer's code and body.
func call(h http.Handler, request string) (int, string) {
	method, path, _ := strings.Cut(request, " ")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestRoutes(t *testing.T) {
	tests := []struct {
		name     string
		before   []string
		request  string
		wantCode int
		wantBody string
	}{
		{"charge", nil, "POST /payments/a", 200, `{"orderId":"a","status":"PAID"}`},
		{"not paid", nil, "GET /payments/a", 200, `{"orderId":"a","status":"NOT_PAID"}`},
		{"paid", []string{"POST /payments/a"}, "GET /payments/a", 200, `{"orderId":"a","status":"PAID"}`},
		{"other order", []string{"POST /payments/a"}, "GET /payments/b", 200, `{"orderId":"b","status":"NOT_PAID"}`},
		{"down", []string{"POST /admin/mode/down"}, "POST /payments/a", 500, `{"error":"payment provider down"}`},
		{
			"down, a question",
			[]string{"POST /payments/a", "POST /admin/mode/down"},
			"GET /payments/a", 200, `{"orderId":"a","status":"PAID"}`,
		},
		{
			"always flaky",
			[]string{"POST /admin/mode/flaky?failRate=1"},
			"POST /payments/a", 500, `{"error":"payment provider down"}`,
		},
		{
			"never flaky",
			[]string{"POST /admin/mode/flaky?failRate=0"},
			"POST /payments/a", 200, `{"orderId":"a","status":"PAID"}`,
		},
		{
			"always flaky, a question",
			[]string{"POST /admin/mode/flaky?failRate=1&lost=0"},
			"GET /payments/a", 500, `{"error":"payment provider down"}`,
		},
		{
			"the answer is lost",
			[]string{"POST /admin/mode/flaky?failRate=1&lost=1"},
			"POST /payments/a", 504, `{"error":"the answer was lost"}`,
		},
		{
			"the answer is lost, the charge is not",
			[]string{"POST /admin/mode/flaky?failRate=1&lost=1", "POST /payments/a", "POST /admin/mode/ok"},
			"GET /payments/a", 200, `{"orderId":"a","status":"PAID"}`,
		},
		{
			"questions are counted",
			[]string{"GET /payments/a", "GET /payments/b"},
			"GET /admin/stats", 200, `{"mode":"ok","received":0,"charges":0,"asked":2}`,
		},
		{
			"back to ok",
			[]string{"POST /admin/mode/down", "POST /admin/mode/ok"},
			"POST /payments/a", 200, `{"orderId":"a","status":"PAID"}`,
		},
		{
			"charged twice",
			[]string{"POST /payments/a", "POST /payments/a"},
			"GET /admin/stats", 200, `{"mode":"ok","received":2,"charges":2,"asked":0}`,
		},
		{
			"charged once",
			[]string{"POST /admin/idempotency/on", "POST /payments/a", "POST /payments/a"},
			"GET /admin/stats", 200, `{"mode":"ok","received":2,"charges":1,"asked":0}`,
		},
		{
			"repeated",
			[]string{"POST /admin/idempotency/on", "POST /payments/a"},
			"POST /payments/a", 200, `{"orderId":"a","status":"PAID","repeated":true}`,
		},
		{
			"repeated at once, though slow",
			[]string{"POST /admin/idempotency/on", "POST /payments/a", "POST /admin/mode/slow"},
			"POST /payments/a", 200, `{"orderId":"a","status":"PAID","repeated":true}`,
		},
		{
			"idempotent no more",
			[]string{"POST /admin/idempotency/on", "POST /payments/a", "POST /admin/idempotency/off"},
			"POST /payments/a", 200, `{"orderId":"a","status":"PAID"}`,
		},
		{
			"failures are received, not charged",
			[]string{"POST /admin/mode/down", "POST /payments/a"},
			"GET /admin/stats", 200, `{"mode":"down","received":1,"charges":0,"asked":0}`,
		},
		{
			"reset keeps the mode",
			[]string{"POST /payments/a", "POST /admin/mode/down"},
			"POST /admin/reset", 200, `{"mode":"down","received":0,"charges":0,"asked":0}`,
		},
		{
			"reset forgets",
			[]string{"POST /payments/a", "POST /admin/reset"},
			"GET /payments/a", 200, `{"orderId":"a","status":"NOT_PAID"}`,
		},
		{"no such mode", nil, "POST /admin/mode/up", 400, `{"error":"mode \"up\": must be ok, slow, down or flaky"}`},
		{"rate above 1", nil, "POST /admin/mode/flaky?failRate=1.5", 400, `{"error":"failRate=1.5: must be between 0 and 1"}`},
		{"rate no number", nil, "POST /admin/mode/flaky?failRate=NaN", 400, `{"error":"failRate=NaN: must be between 0 and 1"}`},
		{"lost above 1", nil, "POST /admin/mode/flaky?failRate=0.1&lost=2", 400, `{"error":"lost=2: must be between 0 and 1"}`},
		{"no such switch", nil, "POST /admin/idempotency/maybe", 400, `{"error":"idempotency \"maybe\": must be on or off"}`},
		{"wrong method", nil, "DELETE /payments/a", 405, "Method Not Allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := New(slow).Handler()
				for _, request := range tt.before {
					call(h, request)
				}
				start := time.Now()
				code, body := call(h, tt.request)
				if code != tt.wantCode || body != tt.wantBody {
					t.Errorf("%s: %d %s, want %d %s", tt.request, code, body, tt.wantCode, tt.wantBody)
				}
				if waited := time.Since(start); waited != 0 {
					t.Errorf("answered after %v, want at once", waited)
				}
			})
		})
	}
}

func TestFlakyIsBetween(t *testing.T) {
	s := New(slow)
	h := s.Handler()
	call(h, "POST /admin/mode/flaky")
	for range 1000 {
		call(h, "POST /payments/a")
	}
	if got := s.Stats().Charges; got < 400 || got > 600 {
		t.Errorf("%d of 1000 charged, want about half", got)
	}
}

// Half of the failures have charged, and a flaky provider is the same each time.
func TestFlakyIsTheSameAgain(t *testing.T) {
	run := func() (codes []int, charges int) {
		s := New(slow)
		h := s.Handler()
		call(h, "POST /admin/mode/flaky?failRate=0.4&lost=0.5")
		for range 1000 {
			code, _ := call(h, "POST /payments/a")
			codes = append(codes, code)
		}
		return codes, s.Stats().Charges
	}
	codes, charges := run()
	for code, want := range map[int]int{200: 600, 500: 200, 504: 200} {
		n := 0
		for _, c := range codes {
			if c == code {
				n++
			}
		}
		if n < want-60 || n > want+60 {
			t.Errorf("%d answers of %d, want about %d", n, code, want)
		}
	}
	if charges < 740 || charges > 860 {
		t.Errorf("%d charges, want about 800", charges)
	}
	if again, _ := run(); !slices.Equal(codes, again) {
		t.Error("another sequence the second time")
	}
}

func TestSlowChargesInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(slow)
		h := s.Handler()
		call(h, "POST /admin/mode/slow")

		ctx, hangUp := context.WithTimeout(t.Context(), time.Second)
		defer hangUp()
		w := httptest.NewRecorder()
		go h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/payments/a", nil))

		time.Sleep(slow - time.Nanosecond)
		synctest.Wait()
		if got := s.Stats(); got.Received != 1 || got.Charges != 0 || s.Pending() != 1 {
			t.Errorf("just before: %+v, %d pending", got, s.Pending())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := s.Stats(); got.Charges != 1 || s.Pending() != 0 {
			t.Errorf("after %v: %+v, %d pending; want a charge although the caller hung up", slow, got, s.Pending())
		}
	})
}

func TestTwoSlowRequestsForOneOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(slow)
		h := s.Handler()
		call(h, "POST /admin/mode/slow")
		call(h, "POST /admin/idempotency/on")
		var both sync.WaitGroup
		bodies := make([]string, 2)
		for i := range bodies {
			both.Go(func() { _, bodies[i] = call(h, "POST /payments/a") })
		}
		both.Wait()
		if got := s.Stats().Charges; got != 1 {
			t.Errorf("%d charges, want 1", got)
		}
		if got := strings.Count(strings.Join(bodies, ""), "repeated"); got != 1 {
			t.Errorf("answers %q, want one of them repeated", bodies)
		}
	})
}

func TestCloseEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(slow)
		h := s.Handler()
		call(h, "POST /admin/mode/slow")
		time.AfterFunc(time.Second, func() { s.Close(); s.Close() })
		start := time.Now()
		code, _ := call(h, "POST /payments/a")
		if waited := time.Since(start); code != 500 || waited != time.Second {
			t.Errorf("%d after %v, want 500 after 1s", code, waited)
		}
		if got := s.Stats().Charges; got != 0 {
			t.Errorf("%d charges, want 0", got)
		}
	})
}
