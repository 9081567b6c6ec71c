package holdfasthttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Rule 2: what the caller will not see is read and closed before the next wait, so that
// one connection is enough.
func TestUnseenResponsesFreeTheConnection(t *testing.T) {
	for _, size := range []int{0, 10, 60 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			n := 0
			server, base := serve(t, "HTTP/1.1", func(w http.ResponseWriter, _ *http.Request) {
				if n++; n%3 != 0 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				w.Write(make([]byte, size))
			})
			base.MaxConnsPerHost = 1
			conns := count(base)
			client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(5*time.Second), bulkhead.New(1), fast()))}
			for range 50 {
				resp := do(t, client, http.MethodGet, server.URL, nil)
				if got := readAll(t, resp); resp.StatusCode != 200 || len(got) != size {
					t.Fatalf("status %d, %d bytes", resp.StatusCode, len(got))
				}
			}
			if open, all := conns.now(); n != 150 || open != 1 || all != 1 {
				t.Errorf("%d requests over %d connections, %d of them open; want 150 over 1", n, all, open)
			}
			client.CloseIdleConnections()
			eventually(t, "no connection is left", func() bool { open, _ := conns.now(); return open == 0 })
		})
	}
}

// Rule 2: draining is bounded, in bytes and in time.
func TestDrainingIsBounded(t *testing.T) {
	for _, protocol := range protocols {
		for _, endless := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/endless=%t", protocol, endless), func(t *testing.T) {
				var mu sync.Mutex
				n := 0
				server, base := serve(t, protocol, func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					n++
					last := n == 3
					mu.Unlock()
					if last {
						return
					}
					w.WriteHeader(http.StatusServiceUnavailable)
					for endless && r.Context().Err() == nil {
						if _, err := w.Write(make([]byte, 32<<10)); err != nil {
							return
						}
					}
					http.NewResponseController(w).Flush()
					<-r.Context().Done()
				})
				client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(fast()))}
				begin := time.Now()
				readAll(t, do(t, client, http.MethodGet, server.URL, nil))
				if took := time.Since(begin); took > 4*time.Second {
					t.Errorf("took %v", took)
				}
			})
		}
	}
}

// Values of the policies' context, and of the caller's, reach the base transport.
func TestContextOfAnAttempt(t *testing.T) {
	server, base := serve(t, "HTTP/1.1", (&bodies{codes: []int{503, 200}}).ServeHTTP)
	var attempts []int
	var deadlines []bool
	looking := roundTripper(func(r *http.Request) (*http.Response, error) {
		attempts = append(attempts, retry.AttemptFrom(r.Context()))
		_, has := r.Context().Deadline()
		deadlines = append(deadlines, has)
		return base.RoundTrip(r)
	})
	conns := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { conns++ }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := holdfasthttp.NewTransport(looking, holdfast.Compose(timeout.New(time.Minute), fast())).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, resp)
	if fmt.Sprint(attempts, deadlines, conns) != "[1 2] [true true] 2" {
		t.Errorf("attempts %v, deadlines %v, %d connections got", attempts, deadlines, conns)
	}
}

// Answers without a body hold nothing.
func TestNoBodyHoldsNothing(t *testing.T) {
	for _, protocol := range protocols {
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			t.Run(protocol+"/"+method, func(t *testing.T) {
				server, base := serve(t, protocol, func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet {
						w.WriteHeader(http.StatusNoContent)
					}
				})
				slots := bulkhead.New(1)
				client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(time.Minute), slots))}
				for range 3 {
					do(t, client, method, server.URL, nil) // and never closes
					if n := slots.Stats().InFlight; n != 0 {
						t.Errorf("%d slots taken, want 0", n)
					}
				}
			})
		}
	}
}

// A length of 0 is not the end of a response over HTTP/2: trailers may follow.
func TestLengthZeroIsNotTheEnd(t *testing.T) {
	server, base := serve(t, "HTTP/2.0", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "0")
		w.Header().Set("Trailer", "X-Sum")
		http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			t.Error("the request was cut")
		case <-time.After(20 * time.Millisecond):
		}
		w.Header().Set("X-Sum", "42")
	})
	client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(time.Minute)))}
	resp := do(t, client, http.MethodGet, server.URL, nil)
	if got := readAll(t, resp); got != "" || resp.Trailer.Get("X-Sum") != "42" {
		t.Errorf("%q, trailer %v", got, resp.Trailer)
	}
}

// Trailers of both directions arrive.
func TestTrailers(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server, base := serve(t, protocol, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "X-Sum")
				io.Copy(w, r.Body)
				w.Header().Set("X-Sum", r.Trailer.Get("X-Sum"))
			})
			transport := holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(time.Minute), fast()))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Trailer = http.Header{"X-Sum": nil}
			req.Body = io.NopCloser(io.MultiReader(strings.NewReader("hello"), readFunc(func([]byte) (int, error) {
				req.Trailer.Set("X-Sum", "42")
				return 0, io.EOF
			})))
			req.ContentLength = -1
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if got := readAll(t, resp); got != "hello" || resp.Trailer.Get("X-Sum") != "42" {
				t.Errorf("%q, trailer %v", got, resp.Trailer)
			}
		})
	}
}

// Rule 6: the last response, readable, with a nil error.
func TestExhaustedResponse(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			log := &bodies{codes: []int{503}}
			server, base := serve(t, protocol, log.ServeHTTP)
			client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(time.Minute), fast()))}
			resp := do(t, client, http.MethodGet, server.URL, nil)
			if got := readAll(t, resp); got != "answer" || resp.StatusCode != 503 || len(log.seen()) != 3 {
				t.Errorf("%q, status %d after %d attempts", got, resp.StatusCode, len(log.seen()))
			}
		})
	}
}

// Rule 6: never both a response and an error, nor neither.
func TestContractOfRoundTripper(t *testing.T) {
	failed := errors.New("failed")
	body := &closing{Reader: strings.NewReader("")}
	tests := []struct {
		name     string
		base     roundTripper
		pipeline *holdfast.Pipeline
		check    func(error) bool
	}{
		{
			"base returns both",
			func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: body}, failed
			},
			holdfast.Compose(), func(err error) bool { return err == failed && body.count() == 1 },
		},
		{
			"base returns neither",
			func(*http.Request) (*http.Response, error) { return nil, nil },
			holdfast.Compose(), func(err error) bool { return err != nil },
		},
		{
			"a fallback of another type",
			func(*http.Request) (*http.Response, error) { return nil, failed },
			holdfast.Compose(fallback.Value("x")),
			func(err error) bool {
				mismatch, ok := errors.AsType[*holdfast.ResultTypeError](err)
				return ok && mismatch.Got == "string"
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := holdfasthttp.NewTransport(tt.base, tt.pipeline).RoundTrip(req)
			if resp != nil || !tt.check(err) {
				t.Errorf("%v, %v", resp, err)
			}
		})
	}
	t.Run("a fallback's response", func(t *testing.T) {
		spare := &http.Response{StatusCode: 203, Body: http.NoBody}
		pipeline := holdfast.Compose(fallback.Value(spare))
		base := roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 500, Body: body}, nil })
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := holdfasthttp.NewTransport(base, pipeline).RoundTrip(req); resp != spare || err != nil || body.count() != 2 {
			t.Errorf("%v, %v; the failed response was closed %d times", resp, err, body.count()-1)
		}
	})
}

// Rule 3: what a fallback asked another server for stays readable too.
func TestFallbackFromAnotherServer(t *testing.T) {
	server, base := serve(t, "HTTP/1.1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/spare" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "begin")
		http.NewResponseController(w).Flush()
		time.Sleep(20 * time.Millisecond)
		io.WriteString(w, " end")
	})
	spare := fallback.Func(func(ctx context.Context, _ error) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/spare", nil)
		if err != nil {
			return nil, err
		}
		return base.RoundTrip(req)
	})
	for name, pipeline := range map[string]*holdfast.Pipeline{
		"outermost":      holdfast.Compose(spare),
		"under a limit":  holdfast.Compose(spare, timeout.New(time.Minute)),
		"beside retries": holdfast.Compose(timeout.New(time.Minute), fast(), spare),
	} {
		for _, limit := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprintf("%s/Client.Timeout=%v", name, limit), func(t *testing.T) {
				client := &http.Client{Timeout: limit, Transport: holdfasthttp.NewTransport(base, pipeline)}
				if got := readAll(t, do(t, client, http.MethodGet, server.URL, nil)); got != "begin end" {
					t.Errorf("read %q", got)
				}
			})
		}
	}
}
