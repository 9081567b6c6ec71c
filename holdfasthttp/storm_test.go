package holdfasthttp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/ratelimit"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// noise is what the bodies of the storm begin with: no two places are alike.
var noise = func() []byte {
	b := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}()

// unruly answers, fails, delays, drops the connection in the midst of a body, and sends
// long bodies. It tells how much it means to send, and checks what it is sent.
type unruly struct {
	t        *testing.T
	requests atomic.Int64
}

func (u *unruly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.requests.Add(1)
	sent, err := io.ReadAll(r.Body)
	if err == nil && (fmt.Sprint(len(sent)) != r.Header.Get("X-Length") || !bytes.Equal(sent, noise[:len(sent)])) {
		u.t.Errorf("%s: %d bytes arrived of %s, or others", r.Method, len(sent), r.Header.Get("X-Length"))
	}
	body, choice := noise[:rand.N(4000)], rand.N(10)
	if choice == 1 {
		body = noise
	}
	w.Header().Set("X-Length", fmt.Sprint(len(body)))
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	switch choice {
	case 2:
		w.WriteHeader(http.StatusServiceUnavailable)
	case 3:
		select {
		case <-time.After(rand.N(50 * time.Millisecond)):
		case <-r.Context().Done():
		}
	case 4: // drops
		w.Write(body[:len(body)/2])
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	w.Write(body)
}

// A visitor is one of many clients.
type visitor struct {
	t       *testing.T
	client  *http.Client
	url     string
	hurried bool // leaves in the midst of calls
	whole   *atomic.Int64
}

// call makes a call and checks what it receives.
func (v *visitor) call() {
	ctx, cancel := context.WithCancel(v.t.Context())
	defer cancel()
	if v.hurried && rand.N(5) == 0 {
		time.AfterFunc(rand.N(20*time.Millisecond), cancel)
	}
	method := []string{http.MethodGet, http.MethodPut, http.MethodPost}[rand.N(3)]
	var sent []byte
	if method != http.MethodGet {
		sent = noise[:rand.N(100<<10)]
	}
	req, err := http.NewRequestWithContext(ctx, method, v.url, bytes.NewReader(sent))
	if err != nil {
		v.t.Error(err)
		return
	}
	if rand.N(2) == 0 {
		req.GetBody = nil
	}
	req.Header.Set("X-Length", fmt.Sprint(len(sent)))
	resp, err := v.client.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if rand.N(20) == 0 { // reads nothing
		return
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusNonAuthoritativeInfo {
		return
	}
	v.whole.Add(1)
	if fmt.Sprint(len(got)) != resp.Header.Get("X-Length") || !bytes.Equal(got, noise[:len(got)]) {
		v.t.Errorf("%d bytes arrived of %s, or others", len(got), resp.Header.Get("X-Length"))
	}
}

// Rule 10: 200 clients through the full pipeline.
func TestStorm(t *testing.T) {
	for protocol, clients := range map[string]int{"HTTP/1.1": 200, "HTTP/2.0": 50} {
		for _, hurried := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/hurried=%t", protocol, hurried), func(t *testing.T) { storm(t, protocol, clients, hurried) })
		}
	}
}

func storm(t *testing.T, protocol string, clients int, hurried bool) {
	u := &unruly{t: t}
	server, base := serve(t, protocol, u.ServeHTTP)
	conns := count(base)
	base.MaxIdleConnsPerHost = 50
	var attempts atomic.Int64
	counting := roundTripper(func(r *http.Request) (*http.Response, error) {
		attempts.Add(1)
		return base.RoundTrip(r)
	})
	limit := time.Minute // so that every attempt reaches the server
	if hurried {
		limit = 40 * time.Millisecond
	}
	slots := bulkhead.New(50, bulkhead.MaxQueue(200))
	pipeline := holdfast.Layers{
		Timeout:   timeout.New(limit),
		Bulkhead:  slots,
		RateLimit: ratelimit.New(ratelimit.Per(100000, time.Second), 1000, ratelimit.MaxWait(time.Second)),
		Breaker:   breaker.New("unruly", breaker.FailureRate(.5, breaker.Last(50)), breaker.OpenFor(time.Millisecond)),
		Retry:     retry.New(retry.Exponential(time.Millisecond, 10*time.Millisecond)),
		Total:     timeout.New(2*time.Minute, timeout.Name("total")),
		Fallback: fallback.Func(func(context.Context, error) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNonAuthoritativeInfo, Body: http.NoBody}, nil
		}),
	}.Compose()
	v := visitor{
		t: t, url: server.URL, hurried: hurried, whole: &atomic.Int64{},
		client: &http.Client{Transport: holdfasthttp.NewTransport(counting, pipeline)},
	}
	var visitors sync.WaitGroup
	for range clients {
		visitors.Go(func() {
			v.call()
			v.call()
		})
	}
	visitors.Wait()
	if n := slots.Stats().InFlight; n != 0 {
		t.Errorf("%d slots taken, want 0", n)
	}
	if !hurried {
		if v.whole.Load() == 0 {
			t.Error("nobody received a whole body")
		}
		if sent, seen := attempts.Load(), u.requests.Load(); sent != seen {
			t.Errorf("%d attempts, and %d requests at the server", sent, seen)
		}
	}
	eventually(t, "no connection is left", func() bool {
		base.CloseIdleConnections() // again: what was cancelled takes a moment to be idle
		open, _ := conns.now()
		return open == 0
	})
}
