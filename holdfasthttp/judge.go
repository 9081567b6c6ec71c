package holdfasthttp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// Status is the value of a handler's call, as a pipeline's policies see it: the status
// that the handler wrote.
type Status int

// Classify is what policies without a classifier of their own judge HTTP by: an answer
// of 500 and above is a Failure, 429 says nothing about the server's health and is
// Ignored, every other answer is a Success. Errors are Failures, refusals of a policy
// Ignored. The value is an *http.Response or a [Status]; any other is judged by err
// alone.
func Classify(value any, err error) policy.Outcome { return classify(value, err, policy.Ignored) }

// CountTooManyRequests is [Classify], except that 429 is a Failure.
func CountTooManyRequests() policy.Classifier {
	return func(value any, err error) policy.Outcome { return classify(value, err, policy.Failure) }
}

func classify(value any, err error, tooMany policy.Outcome) policy.Outcome {
	code, ok := statusOf(value)
	switch {
	case err != nil || !ok:
		return policy.DefaultClassifier(value, err)
	case code >= 500:
		return policy.Failure
	case code == http.StatusTooManyRequests:
		return tooMany
	default:
		return policy.Success
	}
}

// RetryableStatus is for retry.If: an answer with one of codes is a Failure, and so is
// every error that is no refusal; any other answer is a Success. Without codes they are
// 408, 429, 500, 502, 503 and 504, which is what a retry without If repeats. It panics
// on a code below 100 or above 999.
func RetryableStatus(codes ...int) policy.Classifier {
	for _, code := range codes {
		if code < 100 || code > 999 {
			panic(fmt.Sprintf("holdfasthttp: RetryableStatus(%d): must be from 100 to 999", code))
		}
	}
	if len(codes) == 0 {
		return retryable
	}
	codes = slices.Clone(codes)
	return func(value any, err error) policy.Outcome { return retryableAmong(codes, value, err) }
}

var retryableCodes = []int{
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

func retryable(value any, err error) policy.Outcome {
	return retryableAmong(retryableCodes, value, err)
}

func retryableAmong(codes []int, value any, err error) policy.Outcome {
	if code, ok := statusOf(value); ok && err == nil && slices.Contains(codes, code) {
		return policy.Failure
	}
	return policy.DefaultClassifier(value, err)
}

func statusOf(value any) (code int, ok bool) {
	switch v := value.(type) {
	case *http.Response:
		if v != nil {
			return v.StatusCode, true
		}
	case Status:
		return int(v), true
	}
	return 0, false
}

// nothingSent tells whether err proves that the server has seen nothing of the request:
// the connection to it, or to the proxy, could not be made.
func nothingSent(err error) bool {
	return anyOpError(err, func(e *net.OpError) bool { return e.Op == "dial" || e.Op == "proxyconnect" })
}

// certain are the errors of net/http that have no type and will be the same next time.
var certain = []string{
	"unsupported protocol scheme",
	"http: no Host in request URL",
	"http: nil Request.URL",
	"net/http: nil Request.Header",
	"http: invalid ", // a header, method, host
	"http: Request.ContentLength=",
	"http: ContentLength=",
}

// isCertain tells whether err will be the same next time.
func isCertain(err error) bool {
	text := err.Error()
	return errors.Is(err, ErrNotReplayable) ||
		errors.Is(err, http.ErrSchemeMismatch) ||
		isBadTLS(err) ||
		strings.Contains(text, "stopped after ") && strings.Contains(text, " redirects") ||
		containsAny(text, certain...)
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// isBadTLS looks at both sides: what we do not accept, the server's certificate above
// all, and what the server does not.
func isBadTLS(err error) bool {
	return isA[*tls.CertificateVerificationError](err) ||
		isA[x509.UnknownAuthorityError](err) ||
		isA[x509.HostnameError](err) ||
		isA[x509.CertificateInvalidError](err) ||
		isA[tls.RecordHeaderError](err) || // no TLS at all
		anyOpError(err, func(e *net.OpError) bool {
			return e.Op == "remote error" && containsAny(e.Error(), "certificate", "handshake failure", "protocol version")
		})
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// anyOpError looks at every *net.OpError of a chain: one may hold another.
func anyOpError(err error, accept func(*net.OpError) bool) bool {
	for {
		e, ok := errors.AsType[*net.OpError](err)
		if !ok || accept(e) {
			return ok
		}
		err = e.Err
	}
}

// retryAfter is how long the server asks to wait; 0 if it does not, or makes no sense.
func retryAfter(value any) time.Duration {
	resp, ok := value.(*http.Response)
	if !ok || resp == nil ||
		resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	return parseRetryAfter(resp.Header.Get("Retry-After"), resp.Header.Get("Date"))
}

// parseRetryAfter takes seconds, or a date, which is compared with the server's own
// clock. What is negative or too long for a Duration is 0.
func parseRetryAfter(after, date string) time.Duration {
	after = strings.TrimSpace(after)
	if seconds, err := strconv.ParseUint(after, 10, 63); err == nil {
		if seconds > math.MaxInt64/uint64(time.Second) {
			return 0
		}
		return time.Duration(seconds) * time.Second
	}
	then, err := http.ParseTime(after)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(date)
	if err != nil {
		now = time.Now()
	}
	wait := then.Sub(now) // saturates
	if wait < 0 || wait == math.MaxInt64 {
		return 0
	}
	return wait
}
