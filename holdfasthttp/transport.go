package holdfasthttp

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/policy"
)

// NewTransport returns a transport that sends each request through p, over base. A nil
// base is http.DefaultTransport. It is safe for concurrent use if base is, and panics on
// a bad setting.
//
// The context of the policies is the request's. The response is the last attempt's,
// whatever its status; its body stays readable after p has returned, and holds what the
// policies gave the call, a slot of a bulkhead say, until its end or Close. A timeout
// policy bounds the time to the header, and not the reading of the body: that is bounded
// by the request's context, and by [BodyTimeout].
//
// A breaker without Classify judges by [Classify], and a retry without If by
// [RetryableStatus]; see [RetryIdempotentOnly] for what is repeated. A wait that the
// server asks for with Retry-After, on 429 and 503, is obeyed up to retry's
// MaxRetryAfter.
//
// A fallback in p must answer with an *http.Response.
//
// Besides what the policies cost, an attempt costs some 3 µs and a dozen allocations, most
// of them for the copy of the request and its context; a timeout policy makes it 10 µs.
func NewTransport(base http.RoundTripper, p *holdfast.Pipeline, opts ...Option) http.RoundTripper {
	s := build(sideTransport, p, opts)
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{base: base, settings: s, lanes: newLanes(p, &s)}
}

type transport struct {
	base     http.RoundTripper
	settings settings
	lanes    *lanes
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	trip := &roundTrip{transport: t, request: req, payload: payloadOf(req)}
	defer trip.payload.finish()
	var leave, unwatch func()
	trip.lane, leave = t.lanes.enter(req)
	trip.caller, unwatch = callerOf(req)
	defer func() {
		trip.hold(resp, unwatch)
		trip.hold(resp, leave)
	}()
	trip.identify()
	return trip.conclude(trip.lane.pipeline.Invoke(trip.caller, trip))
}

// CloseIdleConnections is for the method of http.Client.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// hold has f run when the body of resp ends, or now where there is none. A nil f is
// nothing to do.
func (t *roundTrip) hold(resp *http.Response, f func()) {
	if f != nil && !t.Keep(resp, f) {
		f()
	}
}

// A roundTrip is one request on its way: the call that the policies run.
type roundTrip struct {
	transport *transport
	request   *http.Request // the caller's, which is not changed
	caller    context.Context
	payload   payload
	lane      *lane

	idempotencyKey string // to be set in each attempt; "": none
	repeatable     bool   // even if it was sent
}

const idempotencyHeader = "Idempotency-Key"

// identify finds out whether the request may be repeated, and gives it its key.
func (t *roundTrip) identify() {
	s := &t.transport.settings
	has := t.request.Header.Get(idempotencyHeader) != ""
	if !has && s.idempotencyKey != nil {
		t.idempotencyKey = s.idempotencyKey(t.request)
	}
	t.repeatable = s.retryAll || has || t.idempotencyKey != "" || idempotent(t.request.Method)
}

func idempotent(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	default:
		return false
	}
}

// Invoke implements [policy.Call]: one attempt.
func (t *roundTrip) Invoke(ctx context.Context) (any, error) {
	defer t.transport.lanes.hold(t.lane)()
	if err := policy.ContextError(ctx); err != nil { // an abandoned attempt may come late
		return nil, err
	}
	body, err := t.payload.open(t.keeps())
	if err != nil {
		return nil, err
	}
	resp, err := t.send(begin(ctx, t.caller, body))
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// keeps is how much of a body is to be kept for another attempt.
func (t *roundTrip) keeps() int64 {
	if limit := t.transport.settings.maxReplay; t.repeatable && t.request.ContentLength <= limit {
		return limit
	}
	return 0
}

// send makes one exchange, which ends here or with the body of the response.
func (t *roundTrip) send(x *exchange) (resp *http.Response, err error) {
	established := false
	defer func() {
		if !established {
			x.end()
		}
	}()
	req := t.attempt(x)
	resp, err = t.transport.base.RoundTrip(req)
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return nil, x.explain(err)
	case resp == nil:
		return nil, errNoResponse
	}
	if !x.establish() { // the attempt was cut as the header came: the body is lost
		if resp.Body != nil {
			resp.Body.Close()
		}
		return nil, policy.ContextError(x.attempt)
	}
	established = true
	if resp.Request == req {
		resp.Request = t.request
	}
	wrapBody(resp, req.Method, x, t.transport.settings.bodyTimeout)
	return resp, nil
}

// attempt is the request as it is sent this time.
func (t *roundTrip) attempt(x *exchange) *http.Request {
	req := t.request.Clone(x.ctx)
	req.Trailer = t.request.Trailer // which the caller fills in while the body is read
	req.Cancel = nil                //lint:ignore SA1019 the context ends with it
	if x.sent != nil {
		req.Body = x.sent
		req.GetBody = t.payload.renewal(t.keeps())
	}
	if t.idempotencyKey != "" {
		if req.Header == nil {
			req.Header = http.Header{}
		}
		req.Header.Set(idempotencyHeader, t.idempotencyKey)
	}
	return req
}

// conclude makes what the policies returned into what net/http's contract allows.
func (t *roundTrip) conclude(value any, err error) (*http.Response, error) {
	if err != nil {
		policy.Discard(t, value)
		return nil, forURLError(err)
	}
	resp, ok := value.(*http.Response)
	if !ok || resp == nil {
		return nil, &holdfast.ResultTypeError{Want: "*http.Response", Got: fmt.Sprintf("%T", value)}
	}
	return resp, nil
}

// Keep implements [policy.Keeper]: release is run when the body of the response ends.
func (t *roundTrip) Keep(value any, release func()) bool {
	b := bodyOf(value)
	if b == nil {
		b = t.adopt(value)
	}
	return b != nil && b.keep(release)
}

// adopt makes the body of a response that a fallback got elsewhere, under the context
// that it was given, one of ours; nil where there is nothing to read.
func (t *roundTrip) adopt(value any) *body {
	resp, ok := value.(*http.Response)
	if !ok || resp == nil || isBodyless(resp, t.request.Method) {
		return nil
	}
	wrapBody(resp, t.request.Method, begin(t.caller, t.caller, nil), 0)
	return bodyOf(resp)
}

// Discard implements [policy.Keeper]. It reads what is left of a short body, so that the
// connection can be used again, and closes it.
func (t *roundTrip) Discard(value any) {
	if b := bodyOf(value); b != nil {
		b.discard()
		return
	}
	if resp, ok := value.(*http.Response); ok && resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
}

// Outcome implements [policy.Judge].
func (t *roundTrip) Outcome(value any, err error) policy.Outcome {
	if err != nil && t.payload.failed() { // the caller's own fault
		return policy.Ignored
	}
	return Classify(value, err)
}

// Again implements [policy.Judge].
func (t *roundTrip) Again(value any, err error) (wait time.Duration, ok bool) {
	if !t.lane.selective && retryable(value, err) != policy.Failure || !t.allowed(err) {
		return 0, false
	}
	return retryAfter(value), true
}

// allowed tells whether another attempt may be made after one that ended with err.
func (t *roundTrip) allowed(err error) bool {
	switch {
	case err != nil && (isCertain(err) || policy.Rejected(err)):
		return false
	case !t.repeatable && (err == nil || !nothingSent(err)):
		return false
	default:
		return t.payload.promise()
	}
}
