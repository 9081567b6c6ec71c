package holdfasthttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

func byPath(r *http.Request) string { return strings.Trim(r.URL.Path, "/") }

// made notes which pipelines were made; each has a breaker that one failure opens.
type made struct {
	mu       sync.Mutex
	keys     []string
	breakers map[string]*breaker.Breaker
}

func (m *made) make(key string) *holdfast.Pipeline {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.breakers == nil {
		m.breakers = map[string]*breaker.Breaker{}
	}
	m.keys = append(m.keys, key)
	m.breakers[key] = breaker.New(key, breaker.ConsecutiveFailures(1))
	return holdfast.Compose(timeout.New(time.Minute), m.breakers[key])
}

func (m *made) seen() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.keys, " ")
}

// answering answers 503 where the query says so, with a body that goes on where it says so.
func answering(r *http.Request) (*http.Response, error) {
	code := 200
	if r.URL.RawQuery == "fail" {
		code = 503
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader("answer"))}, nil
}

// Rule 9: the least recently used idle one goes, unless its circuit is not closed or a
// call is in flight.
func TestKeyedDropsTheLeastRecentlyUsed(t *testing.T) {
	tests := []struct {
		name  string
		calls string // "a+" leaves the body open, "a-" closes it, "a?fail" fails, "a!" resets the breaker
		want  string // pipelines made, in order
	}{
		{"fits", "a b c a b c", "a b c"},
		{"the oldest goes", "a b c d b c d a", "a b c d a"},
		{"use keeps", "a b c a d a b", "a b c d b"},
		{"an open body keeps", "a+ b c d e a a-", "a b c d e"},
		{"a closed body does not", "a+ a- b c d a", "a b c d a"},
		{"an open circuit keeps", "a?fail b c d e f a", "a b c d e f"},
		{"once it is closed, it goes", "a?fail b c d e a! f a", "a b c d e f a"},
		{"more than max", "a?fail b?fail c?fail d?fail e f d c b a", "a b c d e f"},
		{"more than max, then not", "a?fail b?fail c?fail d?fail a! b! c! d! e d a", "a b c d e a"},
		{"the empty key", " a  b  c ", "a b c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, open := &made{}, map[string]io.Closer{}
			transport := holdfasthttp.NewTransport(roundTripper(answering), holdfast.Compose(), holdfasthttp.Keyed(byPath, m.make, 3))
			for call := range strings.SplitSeq(tt.calls, " ") {
				key := strings.TrimRight(call, "+-!")
				if strings.HasSuffix(call, "-") {
					open[key].Close()
					continue
				}
				if strings.HasSuffix(call, "!") {
					m.breakers[key].Reset()
					continue
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/"+key, nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := transport.RoundTrip(req)
				switch {
				case errors.Is(err, breaker.ErrOpen):
				case err != nil:
					t.Fatal(err)
				case strings.HasSuffix(call, "+"):
					open[key] = resp.Body
				default:
					readAll(t, resp)
				}
			}
			if got := m.seen(); got != tt.want {
				t.Errorf("made %s, want %s", got, tt.want)
			}
		})
	}
}

// Rule 9: one instance per key, also under concurrent first use.
func TestKeyedFirstUse(t *testing.T) {
	var calls atomic.Int64
	transport := holdfasthttp.NewTransport(roundTripper(answering), holdfast.Compose(), holdfasthttp.Keyed(byPath,
		func(string) *holdfast.Pipeline {
			calls.Add(1)
			time.Sleep(5 * time.Millisecond)
			return holdfast.Compose()
		}, 10))
	var users sync.WaitGroup
	for i := range 100 {
		users.Go(func() {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1/%d", i%5), nil)
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
	}
	users.Wait()
	if n := calls.Load(); n != 5 {
		t.Errorf("%d pipelines made, want 5", n)
	}
}

// A make that panics, or returns nil, leaves nothing behind.
func TestKeyedMakeFails(t *testing.T) {
	calls := 0
	transport := holdfasthttp.NewTransport(roundTripper(answering), holdfast.Compose(), holdfasthttp.Keyed(byPath,
		func(string) *holdfast.Pipeline {
			switch calls++; calls {
			case 1:
				panic("first")
			case 2:
				return nil
			default:
				return holdfast.Compose()
			}
		}, 1))
	var panics []any
	for range 4 {
		func() {
			defer func() { panics = append(panics, recover()) }()
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/a", nil)
			if resp, err := transport.RoundTrip(req); err == nil {
				resp.Body.Close()
			}
		}()
	}
	want := []any{"first", `holdfasthttp: Keyed: make("a") returned nil: must make a pipeline`, nil, nil}
	if !slices.Equal(panics, want) || calls != 3 {
		t.Errorf("panics %q, want %q; %d calls", panics, want, calls)
	}
}

// A breaker that tells of its transitions while it is asked may use the transport.
func TestKeyedAsksCircuitsWithoutLock(t *testing.T) {
	var transport http.RoundTripper
	get := func(path string) {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/"+path, nil)
		if resp, err := transport.RoundTrip(req); err == nil {
			resp.Body.Close()
		}
	}
	transitions := 0
	transport = holdfasthttp.NewTransport(roundTripper(answering), holdfast.Compose(), holdfasthttp.Keyed(byPath,
		func(key string) *holdfast.Pipeline {
			return holdfast.Compose(breaker.New(key, breaker.ConsecutiveFailures(1), breaker.OpenFor(time.Nanosecond),
				breaker.OnStateChange(func(breaker.Transition) {
					if transitions++; transitions < 10 {
						get("other")
					}
				})))
		}, 1))
	for _, path := range []string{"a?fail", "b", "c", "d?fail", "e"} {
		get(path)
	}
	if transitions == 0 {
		t.Error("no transition")
	}
}

// An abandoned call is in flight until it ends.
func TestKeyedAbandonedCall(t *testing.T) {
	m, ended := &made{}, make(chan struct{})
	make := func(key string) *holdfast.Pipeline {
		m.make(key)
		return holdfast.Compose(timeout.New(10*time.Millisecond, timeout.Abandon()))
	}
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/a" {
			<-ended
		}
		return answering(r)
	})
	transport := holdfasthttp.NewTransport(base, holdfast.Compose(), holdfasthttp.Keyed(byPath, make, 1))
	get := func(path string) error {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/"+path, nil)
		resp, err := transport.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	for _, path := range []string{"a", "b", "c", "a"} {
		if err := get(path); (path == "a") != errors.Is(err, timeout.ErrExceeded) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := m.seen(); got != "a b c" {
		t.Errorf("made %s", got)
	}
	close(ended)
	eventually(t, "the abandoned one goes", func() bool { get("b"); get("c"); return strings.HasSuffix(m.seen(), "b c") && len(m.seen()) > 6 })
}

// The server's side: a pipeline per tenant.
func TestKeyedHandler(t *testing.T) {
	limits := map[string]*bulkhead.Bulkhead{"a": bulkhead.New(1), "b": bulkhead.New(1)}
	handler := holdfasthttp.NewHandler(http.HandlerFunc(ok), holdfast.Compose(),
		holdfasthttp.Keyed(byPath, func(key string) *holdfast.Pipeline { return holdfast.Compose(limits[key]) }, 2))
	release, err := limits["a"].Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for path, want := range map[string]int{"/a": 503, "/b": 200, "/": 200} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
}

func TestBadSettings(t *testing.T) {
	p := holdfast.Compose()
	key := func(*http.Request) string { return "" }
	make := func(string) *holdfast.Pipeline { return p }
	transport := func(p *holdfast.Pipeline, opts ...holdfasthttp.Option) func() {
		return func() { holdfasthttp.NewTransport(nil, p, opts...) }
	}
	handler := func(next http.Handler, p *holdfast.Pipeline, opts ...holdfasthttp.Option) func() {
		return func() { holdfasthttp.NewHandler(next, p, opts...) }
	}
	tests := []struct {
		name string
		f    func()
		want string // "": no panic
	}{
		{"defaults", transport(p), ""},
		{"the last wins", transport(p, holdfasthttp.MaxReplay(-1), holdfasthttp.MaxReplay(0)), ""},
		{"no pipeline", transport(nil), `holdfasthttp "transport": Pipeline(nil): must not be nil`},
		{"nil option", transport(p, nil), `holdfasthttp "transport": Option(nil): must not be nil`},
		{
			"several", transport(p, holdfasthttp.MaxReplay(-1), holdfasthttp.BodyTimeout(0)),
			`holdfasthttp "transport": MaxReplay(-1): must be at least 0; BodyTimeout(0s): must be greater than 0`,
		},
		{"nil key", transport(p, holdfasthttp.IdempotencyKey(nil)), `holdfasthttp "transport": IdempotencyKey(nil): must not be nil`},
		{"max", transport(p, holdfasthttp.Keyed(key, make, 0)), `holdfasthttp "transport": Keyed(0): max must be at least 1`},
		{"nil make", transport(p, holdfasthttp.Keyed(key, nil, 1)), `holdfasthttp "transport": Keyed(nil): must not be nil`},
		{"handler", handler(http.HandlerFunc(ok), p, holdfasthttp.Keyed(key, make, 1)), ""},
		{"no handler", handler(nil, p), `holdfasthttp: NewHandler(nil): must not be nil`},
		{"no use", handler(http.HandlerFunc(ok), p, holdfasthttp.RetryAll()), `holdfasthttp "handler": RetryAll(): is for a transport`},
		{"status", func() { holdfasthttp.RetryableStatus(503, 42) }, "holdfasthttp: RetryableStatus(42): must be from 100 to 999"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if r := recover(); r != tt.want && (r != nil || tt.want != "") {
					t.Errorf("panic %v, want %q", r, tt.want)
				}
			}()
			tt.f()
		})
	}
}

// Keys come and go from many sides; what is in flight keeps its pipeline.
func TestKeyedStorm(t *testing.T) {
	var live sync.Map // pipelines by key
	make := func(key string) *holdfast.Pipeline {
		slots := bulkhead.New(1000)
		if old, ok := live.Swap(key, slots); ok && old.(*bulkhead.Bulkhead).Stats().InFlight > 0 {
			t.Errorf("%s was dropped with calls in flight", key)
		}
		return holdfast.Compose(slots, fast(retry.Attempts(2)))
	}
	transport := holdfasthttp.NewTransport(roundTripper(answering), holdfast.Compose(policy.Func(func(next policy.Handler) policy.Handler { return next })),
		holdfasthttp.Keyed(byPath, make, 4))
	var users sync.WaitGroup
	for i := range 16 {
		users.Go(func() {
			for n := range 300 {
				req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1/%d", (i+n*7)%12), nil)
				resp, err := transport.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	users.Wait()
}
