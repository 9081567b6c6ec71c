package holdfasthttp_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/timeout"
)

// bodies notes what a server was sent, and answers with codes, the last one for ever.
type bodies struct {
	codes  []int
	header http.Header

	mu   sync.Mutex
	sent []string
	keys []string
}

func (b *bodies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	b.mu.Lock()
	b.sent = append(b.sent, string(body))
	b.keys = append(b.keys, r.Header.Get("Idempotency-Key"))
	code := b.codes[min(len(b.sent), len(b.codes))-1]
	b.mu.Unlock()
	maps.Copy(w.Header(), b.header)
	w.WriteHeader(code)
	io.WriteString(w, "answer")
}

func (b *bodies) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent
}

func TestFullPipeline(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			log := &bodies{codes: []int{503, 503, 200}}
			server, base := serve(t, protocol, log.ServeHTTP)
			slots := bulkhead.New(1)
			pipeline := holdfast.Compose(timeout.New(5*time.Second), slots, fast())
			client := &http.Client{Transport: holdfasthttp.NewTransport(base, pipeline)}
			for range 5 {
				resp := do(t, client, http.MethodPut, server.URL, strings.NewReader("hello"))
				if got := slots.Stats().InFlight; got != 1 {
					t.Errorf("%d slots taken while the body is open, want 1", got)
				}
				if got := readAll(t, resp); got != "answer" || resp.StatusCode != 200 || resp.Proto != protocol {
					t.Fatalf("%s %d %q", resp.Proto, resp.StatusCode, got)
				}
				if got := slots.Stats().InFlight; got != 0 {
					t.Errorf("%d slots taken afterwards, want 0", got)
				}
			}
			if got := strings.Join(log.seen(), " "); got != strings.TrimSpace(strings.Repeat("hello ", 7)) {
				t.Errorf("the server was sent %q", got)
			}
		})
	}
}

// An abandoned attempt's response is closed when it comes, and its slot is free then.
func TestAbandonedAttempt(t *testing.T) {
	arrives := make(chan struct{})
	late := &closing{Reader: strings.NewReader("late")}
	var attempts atomic.Int64
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		if attempts.Add(1) > 1 {
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		}
		<-arrives // whatever its context says
		return &http.Response{StatusCode: 200, Body: late}, nil
	})
	slots := bulkhead.New(2)
	pipeline := holdfast.Compose(timeout.New(50*time.Millisecond, timeout.Abandon()), slots, fast())
	original := &closing{Reader: strings.NewReader("hello")}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1/", original)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := holdfasthttp.NewTransport(base, pipeline).RoundTrip(req)
	if err != nil || resp.StatusCode != 200 || slots.Stats().InFlight != 1 || late.count() != 0 {
		t.Fatalf("%v, %v; %d slots taken", resp, err, slots.Stats().InFlight)
	}
	close(arrives)
	eventually(t, "the late response is closed and its slot free", func() bool {
		return late.count() == 1 && slots.Stats().InFlight == 0
	})
}

// The Timeout of an http.Client includes the body; what is held is free then.
func TestClientTimeoutCutsTheBody(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server, base := serve(t, protocol, slow)
			slots := bulkhead.New(1)
			client := &http.Client{
				Timeout:   600 * time.Millisecond,
				Transport: holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(time.Minute), slots, fast())),
			}
			resp := do(t, client, http.MethodGet, server.URL+"/body", nil)
			got, err := io.ReadAll(resp.Body)
			if timedOut, ok := err.(interface{ Timeout() bool }); string(got) != "begin" || !ok || !timedOut.Timeout() {
				t.Errorf("read %q, %v", got, err)
			}
			if n := slots.Stats().InFlight; n != 0 {
				t.Errorf("%d slots taken, want 0", n)
			}
			resp.Body.Close()
		})
	}
}

// The deprecated Cancel of a request ends it still, as a caller that leaves.
func TestRequestCancel(t *testing.T) {
	server, base := serve(t, "HTTP/1.1", slow)
	b := breaker.New("b", breaker.ConsecutiveFailures(1))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel := make(chan struct{})
	req.Cancel = cancel //lint:ignore SA1019 what is to be tested
	time.AfterFunc(10*time.Millisecond, func() { close(cancel) })
	_, err = holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(time.Minute), b, fast())).RoundTrip(req)
	if !errors.Is(err, context.Canceled) || b.State() != breaker.Closed {
		t.Errorf("%v, circuit %v", err, b.State())
	}
}

// A reverse proxy over the transport, with a handler around it, passes everything on.
func TestReverseProxy(t *testing.T) {
	log := &bodies{codes: []int{503, 200}}
	server, base := serve(t, "HTTP/1.1", log.ServeHTTP)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(time.Minute), fast())),
	}
	front, outer := serve(t, "HTTP/2.0", holdfasthttp.NewHandler(proxy, holdfast.Compose(timeout.New(time.Minute), bulkhead.New(1))).ServeHTTP)
	resp := do(t, &http.Client{Transport: outer}, http.MethodPut, front.URL, strings.NewReader("hello"))
	if got := readAll(t, resp); got != "answer" || resp.StatusCode != 200 || strings.Join(log.seen(), " ") != "hello hello" {
		t.Errorf("status %d, %q; the server was sent %q", resp.StatusCode, got, log.seen())
	}
}
