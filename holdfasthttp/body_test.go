package holdfasthttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Rule 1: bodies are sent whole in every attempt, or the request once only.
func TestBodiesAreSentWhole(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 8<<10) // 128 KiB
	tests := []struct {
		name   string
		opts   []holdfasthttp.Option
		method string
		body   io.Reader
		length int64
		want   []string
	}{
		{name: "none", method: "GET", want: []string{"", "", ""}},
		{name: "GetBody", method: "PUT", body: strings.NewReader("hello"), want: []string{"hello", "hello", "hello"}},
		{name: "GetBody, long", method: "PUT", body: strings.NewReader(long), want: []string{long, long, long}},
		{name: "kept", method: "PUT", body: &closing{Reader: strings.NewReader("hello")}, length: 5, want: []string{"hello", "hello", "hello"}},
		{name: "kept, of unknown length", method: "PUT", body: &closing{Reader: strings.NewReader("hello")}, length: -1, want: []string{"hello", "hello", "hello"}},
		{name: "empty, of unknown length", method: "PUT", body: &closing{Reader: strings.NewReader("")}, length: -1, want: []string{"", "", ""}},
		{name: "too long", method: "PUT", body: &closing{Reader: strings.NewReader(long)}, length: int64(len(long)), want: []string{long}},
		{name: "too long, of unknown length", method: "PUT", body: &closing{Reader: strings.NewReader(long)}, length: -1, want: []string{long}},
		{
			name: "a higher limit", opts: []holdfasthttp.Option{holdfasthttp.MaxReplay(int64(len(long)))},
			method: "PUT", body: &closing{Reader: strings.NewReader(long)}, length: -1, want: []string{long, long, long},
		},
		{
			name: "a byte above the limit", opts: []holdfasthttp.Option{holdfasthttp.MaxReplay(4)},
			method: "PUT", body: &closing{Reader: strings.NewReader("hello")}, length: -1, want: []string{"hello"},
		},
		{
			name: "no replay", opts: []holdfasthttp.Option{holdfasthttp.MaxReplay(0)},
			method: "PUT", body: &closing{Reader: strings.NewReader("hello")}, length: 5, want: []string{"hello"},
		},
		{name: "POST", method: "POST", body: strings.NewReader("hello"), want: []string{"hello"}},
		{
			name: "POST, RetryAll", opts: []holdfasthttp.Option{holdfasthttp.RetryAll()},
			method: "POST", body: &closing{Reader: strings.NewReader("hello")}, length: -1, want: []string{"hello", "hello", "hello"},
		},
	}
	for _, protocol := range protocols {
		for _, tt := range tests {
			t.Run(protocol+"/"+tt.name, func(t *testing.T) {
				log := &bodies{codes: []int{503, 503, 200}}
				server, base := serve(t, protocol, log.ServeHTTP)
				client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(fast()), tt.opts...)}
				body := tt.body
				if seeker, ok := body.(io.Seeker); ok {
					seeker.Seek(0, io.SeekStart)
				}
				if c, ok := body.(*closing); ok {
					c.Reader.(io.Seeker).Seek(0, io.SeekStart)
					body = &closing{Reader: c.Reader}
				}
				req, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL, body)
				if err != nil {
					t.Fatal(err)
				}
				if tt.length != 0 {
					req.ContentLength = tt.length
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				if got := readAll(t, resp); got != "answer" {
					t.Errorf("read %q", got)
				}
				if got := log.seen(); !slices.Equal(got, tt.want) {
					t.Errorf("the server was sent %d bodies of lengths %v, want %d", len(got), lengths(got), len(tt.want))
				}
				if want := map[bool]int{true: 200, false: 503}[len(tt.want) == 3]; resp.StatusCode != want {
					t.Errorf("status %d, want %d", resp.StatusCode, want)
				}
				if c, ok := body.(*closing); ok {
					eventually(t, "the body is closed", func() bool { return c.count() == 1 })
				}
			})
		}
	}
}

func lengths(bodies []string) (n []int) {
	for _, b := range bodies {
		n = append(n, len(b))
	}
	return n
}

// Rule 1: the original is closed once, whatever becomes of the call.
func TestOriginalBodyIsClosedOnce(t *testing.T) {
	open := breaker.New("open")
	defer open.Isolate()()
	answer := func(code int) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			defer r.Body.Close() // and again, as some do
			io.Copy(io.Discard, r.Body)
			r.Body.Close()
			return &http.Response{StatusCode: code, Body: http.NoBody, Request: r}, nil
		}
	}
	tests := []struct {
		name     string
		base     roundTripper
		pipeline *holdfast.Pipeline
		opts     []holdfasthttp.Option
		done     bool
		panics   bool
	}{
		{name: "success", base: answer(200), pipeline: holdfast.Compose(fast())},
		{name: "exhausted", base: answer(503), pipeline: holdfast.Compose(fast())},
		{name: "refused", base: answer(200), pipeline: holdfast.Compose(open)},
		{name: "refused, with a retry", base: answer(200), pipeline: holdfast.Compose(open, fast())},
		{name: "caller gone", base: answer(200), pipeline: holdfast.Compose(), done: true},
		{name: "abandoned", base: answer(200), pipeline: holdfast.Compose(timeout.New(time.Minute, timeout.Abandon()))},
		{
			name: "base fails and closes nothing", pipeline: holdfast.Compose(fast()),
			base: func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		},
		{
			name: "base panics", pipeline: holdfast.Compose(fast()), panics: true,
			base: func(*http.Request) (*http.Response, error) { panic("base") },
		},
		{
			name: "key panics", base: answer(200), pipeline: holdfast.Compose(), panics: true,
			opts: []holdfasthttp.Option{holdfasthttp.IdempotencyKey(func(*http.Request) string { panic("key") })},
		},
		{
			name: "pipeline's key panics", base: answer(200), pipeline: holdfast.Compose(), panics: true,
			opts: []holdfasthttp.Option{holdfasthttp.Keyed(func(*http.Request) string { panic("key") }, func(string) *holdfast.Pipeline { return nil }, 1)},
		},
	}
	for _, tt := range tests {
		for _, getBody := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/GetBody=%t", tt.name, getBody), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.done {
					cancel()
				}
				original := &closing{Reader: strings.NewReader("hello")}
				req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://127.0.0.1:1/", original)
				if err != nil {
					t.Fatal(err)
				}
				copies := []*closing{}
				if getBody {
					req.GetBody = func() (io.ReadCloser, error) {
						c := &closing{Reader: strings.NewReader("hello")}
						copies = append(copies, c)
						return c, nil
					}
				}
				func() {
					defer func() {
						if r := recover(); (r != nil) != tt.panics {
							t.Errorf("panic %v", r)
						}
					}()
					holdfasthttp.NewTransport(tt.base, tt.pipeline, tt.opts...).RoundTrip(req)
				}()
				if got := original.count(); got != 1 {
					t.Errorf("the original was closed %d times, want once", got)
				}
				for i, c := range copies {
					if got := c.count(); got != 1 {
						t.Errorf("copy %d was closed %d times, want once", i, got)
					}
				}
			})
		}
	}
}

// Rule 1: the caller's request is as it was, and comes back with the response.
func TestRequestIsNotModified(t *testing.T) {
	server, base := serve(t, "HTTP/1.1", (&bodies{codes: []int{503, 200}}).ServeHTTP)
	nasty := roundTripper(func(r *http.Request) (*http.Response, error) {
		r.Header.Set("X-Attempt", "1")
		r.URL.Path = "/changed"
		return base.RoundTrip(r)
	})
	transport := holdfasthttp.NewTransport(nasty, holdfast.Compose(timeout.New(time.Minute), fast()),
		holdfasthttp.IdempotencyKey(func(*http.Request) string { return "k" }))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/path", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Mine", "2")
	before := *req
	header, url := req.Header.Clone(), *req.URL
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, resp)
	if !reflect.DeepEqual(req.Header, header) || *req.URL != url || req.Body != before.Body || req.Context() != before.Context() {
		t.Errorf("the request was changed to %+v", req)
	}
	if resp.Request != req {
		t.Error("the response is to another request")
	}
}

// Rule 1: an attempt whose base transport still reads takes nothing from the next.
func TestEarlierAttemptStillReads(t *testing.T) {
	content := bytes.Repeat([]byte("abcdefgh"), 4<<10)
	for _, getBody := range []bool{false, true} {
		t.Run(fmt.Sprintf("GetBody=%t", getBody), func(t *testing.T) {
			var late sync.WaitGroup
			var got []byte
			attempts := 0
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				if attempts++; attempts < 3 { // answers early, and reads on
					late.Go(func() {
						defer r.Body.Close()
						for buffer := make([]byte, 7); ; {
							if _, err := r.Body.Read(buffer); err != nil {
								return
							}
						}
					})
					return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
				}
				defer r.Body.Close()
				var err error
				got, err = io.ReadAll(r.Body)
				return &http.Response{StatusCode: 200, Body: http.NoBody}, err
			})
			original := &closing{Reader: bytes.NewReader(content)}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1/", original)
			if err != nil {
				t.Fatal(err)
			}
			if getBody {
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
			}
			if _, err := holdfasthttp.NewTransport(base, holdfast.Compose(fast())).RoundTrip(req); err != nil {
				t.Fatal(err)
			}
			late.Wait()
			if !bytes.Equal(got, content) {
				t.Errorf("the last attempt read %d bytes, want %d", len(got), len(content))
			}
			if n := original.count(); n != 1 {
				t.Errorf("closed %d times, want once", n)
			}
		})
	}
}

// Rule 1: a server that answers before it has read the body, over real connections.
func TestEarlyAnswer(t *testing.T) {
	content := strings.Repeat("x", 1<<20)
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			log := &bodies{codes: []int{200}}
			n := 0
			server, base := serve(t, protocol, func(w http.ResponseWriter, r *http.Request) {
				if n++; n < 3 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				log.ServeHTTP(w, r)
			})
			client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(fast()))}
			resp := do(t, client, http.MethodPut, server.URL, strings.NewReader(content))
			readAll(t, resp)
			if got := log.seen(); resp.StatusCode != 200 || len(got) != 1 || got[0] != content {
				t.Errorf("status %d, bodies of %v bytes", resp.StatusCode, lengths(got))
			}
		})
	}
}

// Nothing is read before it is sent: the caller may write what it makes of the response.
func TestBothDirections(t *testing.T) {
	server, base := serve(t, "HTTP/2.0", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		for buffer := make([]byte, 16); ; {
			n, err := r.Body.Read(buffer)
			w.Write(bytes.ToUpper(buffer[:n]))
			http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	})
	client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(5*time.Second), fast()))}
	reader, writer := io.Pipe()
	resp := do(t, client, http.MethodPut, server.URL, reader)
	for _, word := range []string{"one", "two", "three"} {
		if _, err := io.WriteString(writer, word); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(word))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != strings.ToUpper(word) {
			t.Fatalf("%q came back as %q, %v", word, got, err)
		}
	}
	writer.Close()
	if got := readAll(t, resp); got != "" {
		t.Errorf("%q at the end", got)
	}
}

// What the caller's reader cannot deliver is neither the server's fault nor tried again.
func TestBodyThatCannotBeRead(t *testing.T) {
	broken := errors.New("disk on fire")
	body := func() io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader("hel"), readFunc(func([]byte) (int, error) { return 0, broken })))
	}
	for _, getBody := range []bool{false, true} {
		t.Run(fmt.Sprintf("GetBody=%t", getBody), func(t *testing.T) {
			server, base := serve(t, "HTTP/1.1", (&bodies{codes: []int{200}}).ServeHTTP)
			b := breaker.New("b", breaker.ConsecutiveFailures(1))
			attempts := 0
			counting := roundTripper(func(r *http.Request) (*http.Response, error) {
				attempts++
				return base.RoundTrip(r)
			})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL, body())
			if err != nil {
				t.Fatal(err)
			}
			if getBody {
				req.GetBody = func() (io.ReadCloser, error) { return body(), nil }
			}
			_, err = holdfasthttp.NewTransport(counting, holdfast.Compose(b, fast())).RoundTrip(req)
			if !errors.Is(err, broken) || attempts != 1 || b.State() != breaker.Closed {
				t.Errorf("%v after %d attempts, circuit %v", err, attempts, b.State())
			}
		})
	}
	t.Run("GetBody fails", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1/", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		req.GetBody = func() (io.ReadCloser, error) { return nil, broken }
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
		})
		_, err = holdfasthttp.NewTransport(base, holdfast.Compose(fast(retry.Attempts(9)))).RoundTrip(req)
		if exhausted, ok := errors.AsType[*retry.ExhaustedError](err); !errors.Is(err, broken) || !ok || exhausted.Attempts != 2 {
			t.Errorf("%v", err)
		}
	})
}

// A body that net/http closes while it is read is not one that cannot be read.
func TestBodyClosedUnderItsReader(t *testing.T) {
	attempts := 0
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		attempts++
		r.Body.Close()
		if _, err := r.Body.Read(make([]byte, 1)); err == nil {
			t.Error("a closed file can be read")
		}
		return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
	})
	open := func() (io.ReadCloser, error) { return os.Open("body_test.go") }
	body, err := open()
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1/", body)
	if err != nil {
		t.Fatal(err)
	}
	req.GetBody = open
	if _, err := holdfasthttp.NewTransport(base, holdfast.Compose(fast())).RoundTrip(req); err != nil || attempts != 3 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// A body that nobody has read when the connection could not be made can be sent still.
func TestBodyOutlivesFailedDial(t *testing.T) {
	log := &bodies{codes: []int{200}}
	server, base := serve(t, "HTTP/1.1", log.ServeHTTP)
	dials := 0
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials++; dials < 3 {
			address = "127.0.0.1:1"
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(fast()), holdfasthttp.MaxReplay(0))}
	body := &closing{Reader: strings.NewReader("hello")}
	resp := do(t, client, http.MethodPost, server.URL, body)
	readAll(t, resp)
	if got := log.seen(); !slices.Equal(got, []string{"hello"}) || body.count() != 1 {
		t.Errorf("the server was sent %q, the body closed %d times", got, body.count())
	}
}

// A policy that repeats without asking the Judge gets an error, not an empty body.
func TestSpentBodyIsNotSentAgain(t *testing.T) {
	twice := policy.Func(func(next policy.Handler) policy.Handler {
		return func(ctx context.Context, call policy.Call) (any, error) {
			value, _ := next(ctx, call)
			policy.Discard(call, value)
			return next(ctx, call)
		}
	})
	log := &bodies{codes: []int{200}}
	server, base := serve(t, "HTTP/1.1", log.ServeHTTP)
	client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(twice))}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, &closing{Reader: strings.NewReader("hello")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(req); !errors.Is(err, holdfasthttp.ErrNotReplayable) || len(log.seen()) != 1 {
		t.Errorf("%v; the server was sent %q", err, log.seen())
	}
}
