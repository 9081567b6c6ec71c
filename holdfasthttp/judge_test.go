package holdfasthttp_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"
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

// A breaker judges answers without being told how.
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

// Whatever a server asks for, the wait is neither negative nor above the limit.
func FuzzRetryAfter(f *testing.F) {
	for _, after := range []string{"30", "-1", "9223372036", "Sun, 06 Nov 1994 08:50:07 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "1.5", ""} {
		f.Add(after, "Sun, 06 Nov 1994 08:49:37 GMT")
		f.Add(after, "")
	}
	f.Fuzz(func(t *testing.T, after, date string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := fast(retry.MaxRetryAfter(time.Hour), retry.OnRetry(func(_ context.Context, a retry.Attempt) {
			if a.Delay < 0 || a.Delay > time.Hour {
				t.Errorf("%q at %q: waits %v", after, date, a.Delay)
			}
			cancel()
		}))
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			header := http.Header{"Retry-After": {after}, "Date": {date}}
			return &http.Response{StatusCode: 503, Header: header, Body: http.NoBody}, nil
		})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/", nil)
		if err != nil {
			t.Fatal(err)
		}
		holdfasthttp.NewTransport(base, holdfast.Compose(r)).RoundTrip(req)
	})
}
