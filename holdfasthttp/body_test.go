package holdfasthttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/holdfasthttp"
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
		{
			name: "base closes nothing", pipeline: holdfast.Compose(fast()),
			base: func(r *http.Request) (*http.Response, error) {
				io.Copy(io.Discard, r.Body)
				return &http.Response{StatusCode: 503, Body: io.NopCloser(strings.NewReader("sorry"))}, nil
			},
		},
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
					if resp, err := holdfasthttp.NewTransport(tt.base, tt.pipeline, tt.opts...).RoundTrip(req); err == nil {
						readAll(t, resp)
					}
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
