package holdfasthttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/ratelimit"
	"github.com/holdfast-go/holdfast/timeout"
)

// fullRetryAfter is told where every slot is taken: when one comes free is not known.
const fullRetryAfter = time.Second

// refuse answers for an error of the policies. It tells the client nothing about how they
// are set, or named.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	code, detail := http.StatusInternalServerError, ""
	wait, known := policy.RetryAfter(err)
	switch {
	case errors.Is(err, ratelimit.ErrExceeded):
		code, detail = http.StatusTooManyRequests, "Too many requests."
	case errors.Is(err, bulkhead.ErrFull):
		code, detail = http.StatusServiceUnavailable, "Too many requests at the same time."
		if !known {
			wait, known = fullRetryAfter, true
		}
	case errors.Is(err, breaker.ErrOpen):
		code, detail = http.StatusServiceUnavailable, "The service recovers from failures."
	case errors.Is(err, policy.ErrRejected):
		code, detail = http.StatusServiceUnavailable, "The service takes no requests."
	case errors.Is(err, timeout.ErrExceeded), policy.ContextError(r.Context()) != nil:
		code, detail, known = http.StatusServiceUnavailable, "The request took too long.", false
	default:
		known = false
	}
	if known {
		w.Header().Set("Retry-After", seconds(wait))
	}
	answer(w, r, code, detail)
}

// seconds are rounded up, and at least 1.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64(max(1, math.Ceil(d.Seconds()))), 10)
}

// A problem is what RFC 9457 calls problem details.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func answer(w http.ResponseWriter, r *http.Request, code int, detail string) {
	title := http.StatusText(code)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if prefersJSON(r.Header.Values("Accept")) {
		h.Set("Content-Type", "application/problem+json")
		w.WriteHeader(code)
		json.NewEncoder(w).Encode(problem{Title: title, Status: code, Detail: detail})
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	if detail == "" {
		detail = title
	}
	fmt.Fprintln(w, detail)
}

// prefersJSON tells whether the client names JSON, and likes text no better. It does not by
// */*, which most send that do not care.
func prefersJSON(accept []string) bool {
	json, text := 0.0, 0.0
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, params, _ := strings.Cut(part, ";")
		q := quality(params)
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "application/problem+json", "application/json", "application/*":
			json = max(json, q)
		case "text/plain", "text/html", "text/*":
			text = max(text, q)
		}
	}
	return json > 0 && json >= text
}

func quality(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			q, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return q
		}
	}
	return 1
}
