package holdfasthttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/ratelimit"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// guarded runs handler under policies on a server, with a client of its own.
func guarded(t *testing.T, protocol string, handler http.HandlerFunc, policies ...policy.Policy) (*http.Client, string) {
	t.Helper()
	server, base := serve(t, protocol, holdfasthttp.NewHandler(handler, holdfast.Compose(policies...)).ServeHTTP)
	return &http.Client{Transport: base}, server.URL
}

func ok(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }

// hang waits for its context, and says nothing.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Rule 7: how refusals are answered.
func TestAnswers(t *testing.T) {
	full := bulkhead.New(1)
	release, err := full.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	spent := ratelimit.New(ratelimit.Per(1, time.Minute), 1)
	spent.Allow()
	tripped := breaker.New("tripped", breaker.ConsecutiveFailures(1), breaker.OpenFor(90*time.Second))
	if done, err := tripped.Allow(); err == nil {
		done(policy.Failure)
	}
	isolated := breaker.New("isolated")
	defer isolated.Isolate()()
	refusing := func(err error) policy.Policy {
		return policy.Func(func(policy.Handler) policy.Handler {
			return func(context.Context, policy.Call) (any, error) { return nil, err }
		})
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		policy  policy.Policy
		code    int
		after   string
		text    string
	}{
		{"none", ok, timeout.New(time.Minute), 200, "", "hello"},
		{"full", ok, full, 503, "1", "Too many requests at the same time.\n"},
		{"rate exceeded", ok, spent, 429, "60", "Too many requests.\n"},
		{"open circuit", ok, tripped, 503, "90", "The service recovers from failures.\n"},
		{"isolated circuit", ok, isolated, 503, "", "The service recovers from failures.\n"},
		{"timeout", hang, timeout.New(10 * time.Millisecond), 503, "", "The request took too long.\n"},
		{"abandoned", hang, timeout.New(10*time.Millisecond, timeout.Abandon()), 503, "", "The request took too long.\n"},
		{"another refusal", ok, refusing(fmt.Errorf("no: %w", policy.ErrRejected)), 503, "", "The service takes no requests.\n"},
		{"another error", ok, refusing(errors.New("secret")), 500, "", "Internal Server Error\n"},
		{
			"a fallback's handler", hang,
			holdfast.Compose(timeout.New(10*time.Millisecond), fallback.Value(http.Handler(http.HandlerFunc(ok)))), 200, "", "hello",
		},
		{"a fallback's status", ok, holdfast.Compose(refusing(io.EOF), fallback.Value(holdfasthttp.Status(404))), 404, "", "Not Found\n"},
		{"a fallback's mistake", ok, holdfast.Compose(refusing(io.EOF), fallback.Value("text")), 500, "", "Internal Server Error\n"},
	}
	for _, protocol := range protocols {
		for _, tt := range tests {
			t.Run(protocol+"/"+tt.name, func(t *testing.T) {
				client, url := guarded(t, protocol, func(w http.ResponseWriter, r *http.Request) {
					if tt.code != 200 { // which must not be seen
						w.Header().Set("Content-Encoding", "gzip")
						w.Header().Set("Content-Length", "1000000")
					}
					tt.handler(w, r)
				}, tt.policy)
				resp := do(t, client, http.MethodGet, url, nil)
				got := readAll(t, resp)
				if after := resp.Header.Get("Retry-After"); resp.StatusCode != tt.code || after != tt.after && (tt.after != "90" || after != "89") || got != tt.text {
					t.Errorf("status %d, Retry-After %q, %q; want %d, %q, %q", resp.StatusCode, after, got, tt.code, tt.after, tt.text)
				}
				if tt.code == 200 {
					return
				}
				if got := resp.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
					t.Errorf("a %s", got)
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Accept", "application/problem+json")
				resp, err = client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				var problem struct {
					Title  string
					Status int
				}
				if err := json.Unmarshal([]byte(readAll(t, resp)), &problem); err != nil {
					t.Error(err)
				}
				if problem.Status != tt.code || problem.Title != http.StatusText(tt.code) || resp.Header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("a %s: %+v", resp.Header.Get("Content-Type"), problem)
				}
			})
		}
	}
}

func TestAccept(t *testing.T) {
	isolated := breaker.New("isolated")
	defer isolated.Isolate()()
	handler := holdfasthttp.NewHandler(http.HandlerFunc(ok), holdfast.Compose(isolated))
	for accept, json := range map[string]bool{
		"":         false,
		"*/*":      false,
		"text/*":   false,
		"nonsense": false,
		"text/html,application/xml;q=0.9,*/*;q=0.8":    false,
		"application/problem+json":                     true,
		"application/json":                             true,
		"Application/JSON; charset=utf-8":              true,
		"application/json, text/plain, */*":            true,
		"application/json;q=0.5, text/plain":           false,
		"application/problem+json, text/plain; q=0.2":  true,
		"application/json;q=0":                         false,
		"text/plain;q=0.1, application/*; q=0.2, */*":  true,
		"application/json;v=1;q=0.1, text/html;q=0.05": true,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type") == "application/problem+json"; got != json {
			t.Errorf("Accept: %s: problem+json %t, want %t", accept, got, json)
		}
	}
}

// Rule 7: the handler's 5xx is a failure, a panic too; both are passed on.
func TestHandlerFailures(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		code    int // 0: no answer
		state   breaker.State
	}{
		{"200", ok, 200, breaker.Closed},
		{"no answer is 200", func(http.ResponseWriter, *http.Request) {}, 200, breaker.Closed},
		{"404", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, 404, breaker.Closed},
		{"429", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, 429, breaker.Closed},
		{"500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, 500, breaker.Open},
		{"503", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, 503, breaker.Open},
		{"panic", func(http.ResponseWriter, *http.Request) { panic("handler") }, 0, breaker.Open},
		{"abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, breaker.Open},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := breaker.New("b", breaker.ConsecutiveFailures(1))
			client, url := guarded(t, "HTTP/1.1", tt.handler, timeout.New(time.Minute), b)
			resp, err := client.Get(url)
			if tt.code == 0 {
				if err == nil {
					t.Errorf("status %d", resp.StatusCode)
				}
			} else if err != nil || resp.StatusCode != tt.code {
				t.Errorf("%v, %v", resp, err)
			} else {
				readAll(t, resp)
			}
			if got := b.State(); got != tt.state {
				t.Errorf("the circuit is %v, want %v", got, tt.state)
			}
		})
	}
	t.Run("the panic's value", func(t *testing.T) {
		for _, policies := range [][]policy.Policy{{timeout.New(time.Minute)}, {timeout.New(time.Minute, timeout.Abandon())}} {
			func() {
				defer func() {
					if r := recover(); r != "handler" {
						t.Errorf("recovered %v", r)
					}
				}()
				holdfasthttp.NewHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("handler") }),
					holdfast.Compose(policies...)).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
			}()
		}
	})
}

// A request is not repeated on the server, whatever the retry wants.
func TestHandlerIsNotRepeated(t *testing.T) {
	calls := 0
	client, url := guarded(t, "HTTP/1.1", func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}, timeout.New(time.Minute), fast(retry.If(holdfasthttp.RetryableStatus())))
	if resp := do(t, client, http.MethodGet, url, nil); resp.StatusCode != 503 || calls != 1 {
		t.Errorf("status %d after %d calls", resp.StatusCode, calls)
	}
}

// The request's context is the policies', and the handler's is below it.
func TestHandlerContext(t *testing.T) {
	type key struct{}
	server, base := serve(t, "HTTP/1.1", func(w http.ResponseWriter, r *http.Request) {
		holdfasthttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, limited := r.Context().Deadline()
			fmt.Fprint(w, r.Context().Value(key{}), limited, r.Context().Value(http.ServerContextKey) != nil)
		}), holdfast.Compose(timeout.New(time.Minute))).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "value")))
	})
	if got := readAll(t, do(t, &http.Client{Transport: base}, http.MethodGet, server.URL, nil)); got != "valuetrue true" {
		t.Errorf("%q", got)
	}
}

// A client that leaves is no failure, whatever the handler makes of it.
func TestClientLeaves(t *testing.T) {
	for _, code := range []int{0, 500} {
		b, recorder := breaker.New("b", breaker.ConsecutiveFailures(1)), &policytest.Recorder{}
		pipeline := holdfast.Compose(timeout.New(time.Minute), b)
		pipeline.Subscribe(recorder)
		server, base := serve(t, "HTTP/1.1", holdfasthttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hang(w, r)
			if code != 0 {
				w.WriteHeader(code)
			}
		}), pipeline).ServeHTTP)
		client := &http.Client{Transport: base, Timeout: 20 * time.Millisecond}
		if _, err := client.Get(server.URL); err == nil {
			t.Error("answered")
		}
		eventually(t, "the call is done", func() bool { return slices.Contains(recorder.Kinds(), policy.CallDone) })
		if got := b.State(); got != breaker.Closed {
			t.Errorf("the circuit is %v after %d", got, code)
		}
	}
}

// The files of a form are removed although the server does not see the copied request.
func TestFormFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, err := w.CreateFormFile("file", "file.txt")
	if err != nil {
		t.Fatal(err)
	}
	file.Write(make([]byte, 1<<20))
	w.Close()
	client, url := guarded(t, "HTTP/1.1", func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
			t.Errorf("files %v", files)
		}
	}, timeout.New(time.Minute))
	resp, err := client.Post(url, w.FormDataContentType(), &form)
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, resp)
	eventually(t, "the files are removed", func() bool { files, err := os.ReadDir(dir); return err == nil && len(files) == 0 })
}

// Many requests, with handlers that are abandoned in the midst of everything.
func TestHandlerStorm(t *testing.T) {
	slots := bulkhead.New(8)
	handler := holdfasthttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 20 {
			w.Header().Set("X-I", fmt.Sprint(i))
			if i > 10 {
				io.WriteString(w, "piece")
				http.NewResponseController(w).Flush()
			}
			time.Sleep(time.Millisecond / 2)
		}
	}), holdfast.Compose(timeout.New(10*time.Millisecond, timeout.Abandon()), slots, breaker.New("b", breaker.FailureRate(1, breaker.Last(50)))))
	server, base := serve(t, "HTTP/1.1", handler.ServeHTTP)
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for range 10 {
				if resp, err := (&http.Client{Transport: base}).Get(server.URL); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		})
	}
	clients.Wait()
	eventually(t, "every slot is free", func() bool { return slots.Stats().InFlight == 0 })
}
