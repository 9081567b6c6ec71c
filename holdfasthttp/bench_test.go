package holdfasthttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
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

func pipelines() map[string]*holdfast.Pipeline {
	return map[string]*holdfast.Pipeline{
		"none":  holdfast.Compose(),
		"retry": holdfast.Compose(retry.New()),
		"four":  holdfast.Compose(timeout.New(time.Minute), bulkhead.New(1000), breaker.New("b"), retry.New()),
	}
}

// BenchmarkTransport is what a request costs besides its way over the network.
func BenchmarkTransport(b *testing.B) {
	base := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(readFunc(func([]byte) (int, error) { return 0, io.EOF }))}, nil
	})
	for name, pipeline := range pipelines() {
		b.Run(name, func(b *testing.B) {
			transport := holdfasthttp.NewTransport(base, pipeline)
			req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://127.0.0.1/", nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := transport.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}

// BenchmarkHandler is what a request costs besides its handler.
func BenchmarkHandler(b *testing.B) {
	for name, pipeline := range pipelines() {
		b.Run(name, func(b *testing.B) {
			handler := holdfasthttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNoContent)
			}), pipeline)
			r, w := httptest.NewRequest(http.MethodGet, "/", nil), silent{}
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkKeyed is what finding a pipeline costs.
func BenchmarkKeyed(b *testing.B) {
	handler := holdfasthttp.NewHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), holdfast.Compose(),
		holdfasthttp.Keyed(byPath, func(string) *holdfast.Pipeline {
			return holdfast.Compose(policy.Func(func(next policy.Handler) policy.Handler { return next }))
		}, 10))
	r, w := httptest.NewRequest(http.MethodGet, "/key", nil), silent{}
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(w, r)
	}
}

// silent is a ResponseWriter that keeps nothing.
type silent struct{}

func (silent) Header() http.Header         { return nil }
func (silent) Write(p []byte) (int, error) { return len(p), nil }
func (silent) WriteHeader(int)             {}
