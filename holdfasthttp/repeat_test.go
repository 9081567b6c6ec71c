package holdfasthttp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/ratelimit"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Rule 5: what is repeated, by method and answer.
func TestWhatIsRepeated(t *testing.T) {
	key := http.Header{"Idempotency-Key": {"k"}}
	only := func(codes ...int) policy.Policy { return fast(retry.If(holdfasthttp.RetryableStatus(codes...))) }
	tests := []struct {
		name   string
		method string
		code   int
		header http.Header
		retry  policy.Policy
		opts   []holdfasthttp.Option
		want   int
	}{
		{name: "GET", method: "GET", code: 503, want: 3},
		{name: "HEAD", method: "HEAD", code: 503, want: 3},
		{name: "OPTIONS", method: "OPTIONS", code: 503, want: 3},
		{name: "TRACE", method: "TRACE", code: 503, want: 3},
		{name: "PUT", method: "PUT", code: 503, want: 3},
		{name: "DELETE", method: "DELETE", code: 503, want: 3},
		{name: "POST", method: "POST", code: 503, want: 1},
		{name: "PATCH", method: "PATCH", code: 503, want: 1},
		{name: "another method", method: "LINK", code: 503, want: 1},
		{name: "POST with a key", method: "POST", code: 503, header: key, want: 3},
		{name: "POST, RetryAll", method: "POST", code: 503, opts: []holdfasthttp.Option{holdfasthttp.RetryAll()}, want: 3},
		{
			name: "the last option wins", method: "POST", code: 503,
			opts: []holdfasthttp.Option{holdfasthttp.RetryAll(), holdfasthttp.RetryIdempotentOnly()}, want: 1,
		},
		{name: "200", method: "GET", code: 200, want: 1},
		{name: "404", method: "GET", code: 404, want: 1},
		{name: "408", method: "GET", code: 408, want: 3},
		{name: "429", method: "GET", code: 429, want: 3},
		{name: "500", method: "GET", code: 500, want: 3},
		{name: "501", method: "GET", code: 501, want: 1},
		{name: "502", method: "GET", code: 502, want: 3},
		{name: "504", method: "GET", code: 504, want: 3},
		{name: "If chooses another", method: "GET", code: 418, retry: only(418), want: 3},
		{name: "If chooses less", method: "GET", code: 503, retry: only(418), want: 1},
		{name: "If chooses, the method does not allow", method: "POST", code: 418, retry: only(418), want: 1},
		{
			name: "If beside a retry without", method: "GET", code: 200, want: 1,
			retry: holdfast.Compose(fast(), only(418)),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log := &bodies{codes: []int{tt.code}}
			server, base := serve(t, "HTTP/1.1", log.ServeHTTP)
			r := tt.retry
			if r == nil {
				r = fast()
			}
			client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(r), tt.opts...)}
			req, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(req.Header, tt.header)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			readAll(t, resp)
			if got := len(log.seen()); got != tt.want || resp.StatusCode != tt.code {
				t.Errorf("%d attempts, want %d; status %d", got, tt.want, resp.StatusCode)
			}
		})
	}
}

// IdempotencyKey makes one key per call, and leaves the caller's.
func TestIdempotencyKey(t *testing.T) {
	log := &bodies{codes: []int{503}}
	server, base := serve(t, "HTTP/1.1", log.ServeHTTP)
	calls := 0
	client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(fast()),
		holdfasthttp.IdempotencyKey(func(r *http.Request) string {
			if r.Method != http.MethodPost {
				return ""
			}
			calls++
			return fmt.Sprint("key", calls)
		}))}
	for _, method := range []string{"POST", "POST", "PATCH"} {
		readAll(t, do(t, client, method, server.URL, nil))
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "mine")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, resp)
	want := "key1 key1 key1 key2 key2 key2  mine mine mine"
	if got := strings.Join(log.keys, " "); got != want || calls != 2 {
		t.Errorf("keys %q, want %q; %d made", got, want, calls)
	}
}

// Rule 5: errors that prove that nothing was sent, and errors that will be the same.
func TestWhichErrorsAreRepeated(t *testing.T) {
	answering, _ := serve(t, "HTTP/1.1", (&bodies{codes: []int{200}}).ServeHTTP)
	secure, _ := serve(t, "HTTP/2.0", (&bodies{codes: []int{200}}).ServeHTTP)
	refusing := "http://" + closedAddress(t)
	dropping, _ := serve(t, "HTTP/1.1", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	choosy, trusting := serve(t, "HTTP/2.0", (&bodies{codes: []int{200}}).ServeHTTP)
	choosy.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	choosy.TLS.MaxVersion = tls.VersionTLS12 // later ones tell so after the handshake, if the client still listens
	redirects := roundTripper(func(r *http.Request) (*http.Response, error) {
		return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: errors.New("stopped after 10 redirects")}
	})
	tests := []struct {
		name      string
		url       string
		base      http.RoundTripper
		get, post int
	}{
		{"connection refused", refusing, nil, 3, 3},
		{"no such host", "http://none.invalid", nil, 3, 3},
		{"proxy refuses the connection", "https://none.invalid", &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(refusing) }}, 3, 3},
		{"connection dropped", dropping.URL, nil, 3, 1},
		{"unsupported scheme", "gopher://127.0.0.1/", nil, 1, 1},
		{"no host", "http:///path", nil, 1, 1},
		{"no TLS there", strings.Replace(answering.URL, "http:", "https:", 1), nil, 1, 1},
		{"unknown authority", secure.URL, nil, 1, 1},
		{"another host's certificate", strings.Replace(secure.URL, "127.0.0.1", "localhost", 1), withRoots(secure.Certificate()), 1, 1},
		{"our certificate is missing", choosy.URL, trusting, 1, 1},
		{"too many redirects", answering.URL, redirects, 1, 1},
	}
	for _, tt := range tests {
		for method, want := range map[string]int{http.MethodGet: tt.get, http.MethodPost: tt.post} {
			t.Run(tt.name+"/"+method, func(t *testing.T) {
				base := tt.base
				if base == nil {
					plain := &http.Transport{}
					t.Cleanup(plain.CloseIdleConnections)
					base = plain
				}
				attempts := 0
				counting := roundTripper(func(r *http.Request) (*http.Response, error) {
					attempts++
					return base.RoundTrip(r)
				})
				client := &http.Client{Transport: holdfasthttp.NewTransport(counting, holdfast.Compose(fast()))}
				req, err := http.NewRequestWithContext(t.Context(), method, tt.url, strings.NewReader("hello"))
				if err != nil {
					t.Fatal(err)
				}
				_, err = client.Do(req)
				if attempts != want || err == nil {
					t.Errorf("%d attempts, want %d: %v", attempts, want, err)
				}
				if got := errors.Is(err, retry.ErrExhausted); got != (want > 1) {
					t.Errorf("exhausted: %t: %v", got, err)
				}
			})
		}
	}
}

func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func withRoots(certificate *x509.Certificate) *http.Transport {
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
}

// A POST whose attempt was cut by a timeout may have been sent.
func TestTimedOutPostIsNotRepeated(t *testing.T) {
	server, base := serve(t, "HTTP/1.1", slow)
	recorder := &policytest.Recorder{}
	pipeline := holdfast.Compose(timeout.New(20*time.Millisecond), fast())
	pipeline.Subscribe(recorder)
	client := &http.Client{Transport: holdfasthttp.NewTransport(base, pipeline)}
	_, err := client.Post(server.URL, "text/plain", strings.NewReader("hello"))
	want := []policy.Kind{policy.TimeoutExceeded, policy.AttemptDone, policy.CallDone}
	if !errors.Is(err, timeout.ErrExceeded) || !slices.Equal(recorder.Kinds(), want) {
		t.Errorf("%v; events %v", err, recorder.Kinds())
	}
}

// Rule 6 and 7: errors of the policies are found through http.Client.
func TestErrorsThroughClient(t *testing.T) {
	open := breaker.New("payments", breaker.ConsecutiveFailures(1))
	defer open.Isolate()()
	full := bulkhead.New(1)
	release, err := full.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	spent := ratelimit.New(ratelimit.Per(1, time.Hour), 1)
	spent.Allow()
	server, base := serve(t, "HTTP/1.1", slow)
	tests := []struct {
		name     string
		pipeline *holdfast.Pipeline
		is       error
		as       func(error) bool
		timeout  bool
	}{
		{"open circuit", holdfast.Compose(open, fast()), breaker.ErrOpen, as[*breaker.CircuitOpenError], false},
		{"full", holdfast.Compose(full, fast()), bulkhead.ErrFull, as[*bulkhead.FullError], false},
		{"rate exceeded", holdfast.Compose(spent, fast()), ratelimit.ErrExceeded, as[*ratelimit.ExceededError], false},
		{"timeout", holdfast.Compose(timeout.New(10 * time.Millisecond)), timeout.ErrExceeded, as[*timeout.ExceededError], true},
		{"timeout in a verdict", holdfast.Compose(timeout.New(10*time.Millisecond), fast(retry.Attempts(2))), retry.ErrExhausted, as[*timeout.ExceededError], true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client := &http.Client{Transport: holdfasthttp.NewTransport(base, tt.pipeline)}
			resp, err := client.Get(server.URL)
			u, ok := errors.AsType[*url.Error](err)
			if resp != nil || !ok || !errors.Is(err, tt.is) || !tt.as(err) || u.Timeout() != tt.timeout {
				t.Errorf("%v, %v", resp, err)
			}
			if got := policy.Rejected(err); got == tt.timeout {
				t.Errorf("rejected: %t", got)
			}
		})
	}
	t.Run("http.Client's own timeout", func(t *testing.T) {
		b := breaker.New("b", breaker.ConsecutiveFailures(1))
		counting := breaker.New("counting", breaker.ConsecutiveFailures(1), breaker.CountDeadlines())
		client := &http.Client{Timeout: 20 * time.Millisecond, Transport: holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(time.Minute), b, counting, fast()))}
		_, err := client.Get(server.URL)
		if u, ok := errors.AsType[*url.Error](err); !ok || !u.Timeout() || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, timeout.ErrExceeded) {
			t.Errorf("%v", err)
		}
		if b.State() != breaker.Closed {
			t.Error("the caller's deadline counts as a failure")
		}
		if counting.State() != breaker.Open {
			t.Error("the caller's deadline does not count where it should")
		}
	})
	t.Run("transport error", func(t *testing.T) {
		_, base := serve(t, "HTTP/1.1", nil)
		base.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }
		client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(fast()))}
		_, err := client.Get(server.URL)
		if u, ok := errors.AsType[*url.Error](err); !ok || u.Timeout() || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v", err)
		}
	})
}

func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
