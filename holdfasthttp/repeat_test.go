package holdfasthttp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
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

func TestClassify(t *testing.T) {
	answer := func(code int) *http.Response { return &http.Response{StatusCode: code} }
	failed := errors.New("failed")
	tests := []struct {
		value          any
		err            error
		want, counting policy.Outcome
		retryable      policy.Outcome
	}{
		{answer(200), nil, policy.Success, policy.Success, policy.Success},
		{answer(101), nil, policy.Success, policy.Success, policy.Success},
		{answer(304), nil, policy.Success, policy.Success, policy.Success},
		{answer(404), nil, policy.Success, policy.Success, policy.Success},
		{answer(408), nil, policy.Success, policy.Success, policy.Failure},
		{answer(429), nil, policy.Ignored, policy.Failure, policy.Failure},
		{answer(500), nil, policy.Failure, policy.Failure, policy.Failure},
		{answer(501), nil, policy.Failure, policy.Failure, policy.Success},
		{answer(502), nil, policy.Failure, policy.Failure, policy.Failure},
		{answer(503), nil, policy.Failure, policy.Failure, policy.Failure},
		{answer(504), nil, policy.Failure, policy.Failure, policy.Failure},
		{answer(599), nil, policy.Failure, policy.Failure, policy.Success},
		{holdfasthttp.Status(503), nil, policy.Failure, policy.Failure, policy.Failure},
		{holdfasthttp.Status(200), nil, policy.Success, policy.Success, policy.Success},
		{nil, failed, policy.Failure, policy.Failure, policy.Failure},
		{answer(200), failed, policy.Failure, policy.Failure, policy.Failure},
		{nil, &bulkhead.FullError{}, policy.Ignored, policy.Ignored, policy.Ignored},
		{(*http.Response)(nil), nil, policy.Success, policy.Success, policy.Success},
		{"something", nil, policy.Success, policy.Success, policy.Success},
	}
	for _, tt := range tests {
		if got := holdfasthttp.Classify(tt.value, tt.err); got != tt.want {
			t.Errorf("Classify(%v, %v) = %v, want %v", tt.value, tt.err, got, tt.want)
		}
		if got := holdfasthttp.CountTooManyRequests()(tt.value, tt.err); got != tt.counting {
			t.Errorf("CountTooManyRequests: (%v, %v) is %v, want %v", tt.value, tt.err, got, tt.counting)
		}
		if got := holdfasthttp.RetryableStatus()(tt.value, tt.err); got != tt.retryable {
			t.Errorf("RetryableStatus: (%v, %v) is %v, want %v", tt.value, tt.err, got, tt.retryable)
		}
	}
	teapot := holdfasthttp.RetryableStatus(418)
	if teapot(answer(418), nil) != policy.Failure || teapot(answer(503), nil) != policy.Success || teapot(nil, failed) != policy.Failure {
		t.Error("RetryableStatus(418) repeats something else")
	}
}

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
			for name, values := range tt.header {
				req.Header[name] = values
			}
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

// Rule 4: what a server asks for is obeyed up to MaxRetryAfter.
func TestRetryAfter(t *testing.T) {
	const date = "Sun, 06 Nov 1994 08:49:37 GMT"
	header := func(after, date string) http.Header {
		h := http.Header{"Date": {date}}
		if after != "" {
			h.Set("Retry-After", after)
		}
		return h
	}
	tests := []struct {
		name   string
		code   int
		header http.Header
		want   time.Duration // -1: no further attempt
		slack  time.Duration
	}{
		{"seconds", 503, header("30", date), 30 * time.Second, 0},
		{"seconds, 429", 429, header("30", date), 30 * time.Second, 0},
		{"spaces", 503, header(" 30 ", date), 30 * time.Second, 0},
		{"date against the server's clock", 503, header("Sun, 06 Nov 1994 08:50:07 GMT", date), 30 * time.Second, 0},
		{"date of another format", 429, header("Sunday, 06-Nov-94 08:50:07 GMT", date), 30 * time.Second, 0},
		{"date without the server's clock", 503, header(time.Now().Add(29*time.Second).UTC().Format(http.TimeFormat), "?"), 29 * time.Second, 5 * time.Second},
		{"up to the limit", 503, header("60", date), 60 * time.Second, 0},
		{"above the limit", 503, header("61", date), -1, 0},
		{"date above the limit", 503, header("Mon, 07 Nov 1994 08:49:37 GMT", date), -1, 0},
		{"none", 503, header("", date), 0, 0},
		{"zero", 503, header("0", date), 0, 0},
		{"negative", 503, header("-30", date), 0, 0},
		{"date in the past", 503, header("Sun, 06 Nov 1994 08:49:07 GMT", date), 0, 0},
		{"no number", 503, header("soon", date), 0, 0},
		{"a fraction", 503, header("1.5", date), 0, 0},
		{"signed", 503, header("+30", date), 0, 0},
		{"overflows a Duration", 503, header("9223372037", date), 0, 0},
		{"overflows an integer", 503, header("99999999999999999999", date), 0, 0},
		{"date beyond a Duration", 503, header("Fri, 31 Dec 9999 23:59:59 GMT", date), 0, 0},
		{"another status", 500, header("30", date), 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log := &bodies{codes: []int{tt.code}, header: tt.header}
			server, base := serve(t, "HTTP/1.1", log.ServeHTTP)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			delay := time.Duration(-1)
			r := fast(retry.OnRetry(func(_ context.Context, a retry.Attempt) {
				delay = a.Delay
				cancel() // nobody has to wait for it
			}))
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := holdfasthttp.NewTransport(base, holdfast.Compose(r)).RoundTrip(req)
			if (err == nil) != (tt.want < 0) {
				t.Fatalf("%v, %v", resp, err)
			}
			if resp != nil && readAll(t, resp) != "answer" {
				t.Error("the last response cannot be read")
			}
			if delay < tt.want-tt.slack || delay > tt.want {
				t.Errorf("waits %v, want %v", delay, tt.want)
			}
		})
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

// Rule 2 of the breaker: it judges answers without being told how.
func TestBreakerJudgesAnswers(t *testing.T) {
	for code, want := range map[int]breaker.State{200: breaker.Closed, 404: breaker.Closed, 429: breaker.Closed, 500: breaker.Open, 503: breaker.Open} {
		server, base := serve(t, "HTTP/1.1", (&bodies{codes: []int{code}}).ServeHTTP)
		b := breaker.New("b", breaker.ConsecutiveFailures(2))
		client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(b))}
		for range 2 {
			readAll(t, do(t, client, http.MethodGet, server.URL, nil))
		}
		if got := b.State(); got != want {
			t.Errorf("after two %ds the circuit is %v, want %v", code, got, want)
		}
	}
}
