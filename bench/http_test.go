package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	failsafebreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	failsafetimeout "github.com/failsafe-go/failsafe-go/timeout"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// A transport is one way to send a request under policies. Its attempts are 3, its
// timeout a second, and its breaker opens after five failures in a row.
type transport struct {
	name string
	over func(base http.RoundTripper) http.RoundTripper
}

var transports = []transport{
	{"bare", func(base http.RoundTripper) http.RoundTripper { return base }},
	{"holdfast-retry", func(base http.RoundTripper) http.RoundTripper {
		return holdfasthttp.NewTransport(base, holdfast.Compose(retry.New(retry.Constant(0))))
	}},
	{"failsafehttp-retry", func(base http.RoundTripper) http.RoundTripper {
		return failsafehttp.NewRoundTripper(base, failsafehttp.NewRetryPolicyBuilder().WithDelay(0).Build())
	}},
	{"go-retryablehttp", func(base http.RoundTripper) http.RoundTripper {
		client := retryablehttp.NewClient()
		client.HTTPClient.Transport = base
		client.Logger = nil
		client.RetryMax, client.RetryWaitMin, client.RetryWaitMax = 2, 0, 0
		return &retryablehttp.RoundTripper{Client: client}
	}},
	{"holdfast-three", func(base http.RoundTripper) http.RoundTripper {
		return holdfasthttp.NewTransport(base, holdfast.Compose(
			timeout.New(time.Second), breaker.New("b"), retry.New(retry.Constant(0)),
		))
	}},
	{"failsafehttp-three", func(base http.RoundTripper) http.RoundTripper {
		return failsafehttp.NewRoundTripper(base,
			failsafe.Policy[*http.Response](failsafehttp.NewRetryPolicyBuilder().WithDelay(0).Build()),
			failsafebreaker.NewBuilder[*http.Response]().WithFailureThreshold(5).Build(),
			failsafetimeout.New[*http.Response](time.Second),
		)
	}},
}

// answer is a base that answers at once: what remains is the cost of the transport.
type answer struct{}

func (answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(emptyReader{}), Request: r}, nil
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, io.EOF }

// BenchmarkHTTP is a GET over a kept connection of the loopback, and its body read.
func BenchmarkHTTP(b *testing.B) {
	for _, tr := range transports {
		b.Run(tr.name, func(b *testing.B) {
			server := hello()
			defer server.Close()
			base := http.DefaultTransport.(*http.Transport).Clone()
			defer base.CloseIdleConnections()
			get(b, tr.over(base), server.URL)
		})
	}
}

// BenchmarkHTTPOverhead is the same without the network.
func BenchmarkHTTPOverhead(b *testing.B) {
	for _, tr := range transports {
		b.Run(tr.name, func(b *testing.B) { get(b, tr.over(answer{}), "http://127.0.0.1/") })
	}
}

func get(b *testing.B, over http.RoundTripper, url string) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		resp, err := over.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}

func hello() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "hello")
	}))
}

// Each transport but the bare one makes three attempts where the server is down.
func TestTransportsRetry(t *testing.T) {
	for _, tr := range transports[1:] {
		t.Run(tr.name, func(t *testing.T) {
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer server.Close()
			base := http.DefaultTransport.(*http.Transport).Clone()
			defer base.CloseIdleConnections()
			resp, err := (&http.Client{Transport: tr.over(base)}).Get(server.URL)
			if err == nil {
				resp.Body.Close()
			}
			if n := requests.Load(); n != 3 {
				t.Errorf("%d requests, want 3: %v", n, err)
			}
		})
	}
}
