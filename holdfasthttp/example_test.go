package holdfasthttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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

func Example() {
	server := flaky()
	defer server.Close()

	pipeline := holdfast.Layers{
		Timeout:  timeout.New(time.Second), // to the header of each attempt
		Bulkhead: bulkhead.New(20),         // a slot is held until the body is closed
		Breaker:  breaker.New("payments"),
		Retry:    retry.New(),
	}.Compose()
	client := &http.Client{Transport: holdfasthttp.NewTransport(http.DefaultTransport, pipeline)}

	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println("no answer:", err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, string(body), err)
	// Output: 200 OK paid <nil>
}

func ExampleNewTransport_fallback() {
	maintenance := breaker.New("prices")
	defer maintenance.Isolate()()

	pipeline := holdfast.Compose(maintenance,
		fallback.Func(func(context.Context, error) (*http.Response, error) { // a fresh one for each call
			return &http.Response{
				StatusCode: http.StatusOK,
				Header:     http.Header{"Warning": {`110 - "Response is Stale"`}},
				Body:       io.NopCloser(strings.NewReader("yesterday's prices")),
			}, nil
		}),
	)
	client := &http.Client{Transport: holdfasthttp.NewTransport(http.DefaultTransport, pipeline)}

	resp, err := client.Get("http://127.0.0.1/prices")
	if err != nil {
		fmt.Println("no answer:", err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), err)
	// Output: yesterday's prices <nil>
}

func ExampleClassify() {
	server := flaky()
	defer server.Close()

	search := breaker.New("search", breaker.Classify(holdfasthttp.Classify))
	pipeline := holdfast.Compose(search)
	resp, err := holdfast.Do(context.Background(), pipeline, func(context.Context) (*http.Response, error) {
		return http.Get(server.URL)
	})
	if err != nil {
		fmt.Println("no answer:", err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, search.Stats().ConsecutiveFailures)
	// Output: 503 Service Unavailable 1
}

func ExampleNewHandler() {
	orders := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "order 7") // asked with r.Context(), which ends at the limit
	})

	pipeline := holdfast.Compose(
		timeout.New(2*time.Second),
		bulkhead.New(100),
		ratelimit.New(ratelimit.Per(500, time.Second), 50),
	)
	mux := http.NewServeMux()
	mux.Handle("/orders/", holdfasthttp.NewHandler(orders, pipeline))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/orders/7", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 200 order 7
}

func ExampleNewHandler_fallback() {
	sorry := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "<h1>Back in a minute</h1>")
	})
	maintenance := breaker.New("shop")
	defer maintenance.Isolate()()

	pipeline := holdfast.Compose(maintenance, fallback.Value[http.Handler](sorry))
	shop := holdfasthttp.NewHandler(http.NotFoundHandler(), pipeline)

	w := httptest.NewRecorder()
	shop.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 503 <h1>Back in a minute</h1>
}

func ExampleIdempotencyKey() {
	server := flaky()
	defer server.Close()
	pipeline := holdfast.Compose(retry.New(retry.Constant(0)))
	numbers := 0

	client := &http.Client{Transport: holdfasthttp.NewTransport(nil, pipeline,
		holdfasthttp.IdempotencyKey(func(r *http.Request) string {
			if r.Method != http.MethodPost {
				return ""
			}
			numbers++
			return fmt.Sprintf("charge-%d", numbers) // in earnest: a random one, or the order's number
		}),
	)}
	resp, err := client.Post(server.URL, "text/plain", strings.NewReader("10 EUR"))
	if err != nil {
		fmt.Println("no answer:", err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, "with", numbers, "key")
	// Output: 200 OK with 1 key
}

func ExampleRetryableStatus() {
	server := flaky()
	defer server.Close()

	pipeline := holdfast.Compose(
		breaker.New("search", breaker.Classify(holdfasthttp.CountTooManyRequests())),
		retry.New(retry.If(holdfasthttp.RetryableStatus(425, 429)), retry.Constant(0)),
	)
	client := &http.Client{Transport: holdfasthttp.NewTransport(nil, pipeline)}

	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println("no answer:", err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 503 Service Unavailable
}

func ExampleKeyed() {
	server := flaky()
	defer server.Close()

	perHost := func(host string) *holdfast.Pipeline {
		return holdfast.Compose(breaker.New(host), retry.New(retry.Constant(0)))
	}
	client := &http.Client{Transport: holdfasthttp.NewTransport(nil, holdfast.Compose(),
		holdfasthttp.Keyed(func(r *http.Request) string { return r.URL.Host }, perHost, 1000),
	)}
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println("no answer:", err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

func ExampleBodyTimeout() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begin")
		http.NewResponseController(w).Flush()
		<-r.Context().Done() // and nothing more
	}))
	defer server.Close()

	client := &http.Client{Transport: holdfasthttp.NewTransport(nil, holdfast.Compose(timeout.New(time.Second)),
		holdfasthttp.BodyTimeout(20*time.Millisecond),
	)}
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println("no answer:", err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), errors.Is(err, holdfasthttp.ErrBodyTimeout))
	// Output: begin true
}

func ExampleNewTransport_errors() {
	payments := breaker.New("payments")
	defer payments.Isolate()()
	client := &http.Client{Transport: holdfasthttp.NewTransport(nil, holdfast.Compose(payments))}

	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://payments.internal/", nil)
	if err != nil {
		panic(err)
	}
	resp, err := client.Do(req)
	switch {
	case errors.Is(err, breaker.ErrOpen):
		fmt.Println("payments are down, we are not even asking")
	case err != nil:
		fmt.Println("no answer:", err)
	default:
		defer resp.Body.Close()
	}
	// Output: payments are down, we are not even asking
}

// flaky answers 503 to the first request.
func flaky() *httptest.Server {
	first := true
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if first {
			first = false
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "paid")
	}))
}
