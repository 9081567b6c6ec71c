package holdfasthttp

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/policy"
)

// NewHandler returns a handler that runs next under p, on the request's goroutine, with
// the request's context as that of the policies. It is safe for concurrent use if next is,
// and panics on a bad setting.
//
// A refusal, or a timeout before next has answered, is answered with 429 or 503, and
// Retry-After where the wait is known; any other error of a policy with 500. The body is
// a short text, or application/problem+json where Accept prefers JSON. Once next has
// answered, by WriteHeader, Write, Flush or Hijack, nothing is replaced: a verdict is
// only told to the policies. Nothing is buffered, and nothing repeated.
//
// The call's value is the [Status] that next wrote, and policies without a classifier
// judge by [Classify]: a 5xx of next counts as a failure. So does a panic, which is
// passed on. A handler that returns without an answer once its context has ended has
// failed, and so has one that answered before that and returns after it.
//
// Under timeout.Abandon, what next still writes after its limit fails with
// http.ErrHandlerTimeout, and a response that it had begun is cut off.
//
// A fallback in p answers, in place of the text, with an http.Handler.
//
// It adds 1 to 3 µs and four or five allocations to a request.
func NewHandler(next http.Handler, p *holdfast.Pipeline, opts ...Option) http.Handler {
	s := build(sideHandler, p, opts)
	if next == nil {
		panic("holdfasthttp: NewHandler(nil): must not be nil")
	}
	return &handler{next: next, lanes: newLanes(p, &s)}
}

type handler struct {
	next  http.Handler
	lanes *lanes
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	lane, leave := h.lanes.enter(r)
	if leave != nil {
		defer leave()
	}
	s := &serving{handler: h, lane: lane, request: r, writer: newWriter(w, lane.elsewhere)}
	defer s.writer.close()
	s.conclude(lane.pipeline.Invoke(r.Context(), s))
}

// A serving is one request in the hands of a handler: the call that the policies run.
type serving struct {
	handler *handler
	lane    *lane
	request *http.Request
	writer  *writer
}

// Invoke implements [policy.Call].
func (s *serving) Invoke(ctx context.Context) (any, error) {
	defer s.handler.lanes.hold(s.lane)()
	if err := s.writer.begin(ctx); err != nil {
		return nil, err
	}
	r := s.request
	if !same(ctx, r.Context()) {
		r = r.WithContext(ctx)
		defer removeForm(s.request, r)
	}
	s.handler.next.ServeHTTP(s.writer, r)
	code, err := s.writer.finish(ctx, s.request.Context())
	if code == 0 {
		return nil, err
	}
	return Status(code), err
}

// same tells whether a and b are one, without a look into what cannot be compared.
func same(a, b context.Context) bool {
	return reflect.TypeOf(a).Kind() == reflect.Pointer && a == b
}

// removeForm frees the files of a form that was parsed on a copy of the request, where
// the server does not see it.
func removeForm(original, r *http.Request) {
	if r.MultipartForm != nil && original.MultipartForm == nil {
		r.MultipartForm.RemoveAll()
	}
}

// conclude answers for the policies, if the handler has not.
func (s *serving) conclude(value any, err error) {
	committed, running := s.writer.close()
	switch {
	case committed && running: // the client must not take the part for the whole
		panic(http.ErrAbortHandler)
	case committed:
		s.writer.trailers()
	case err != nil:
		refuse(s.writer.inner, s.request, err)
	default:
		s.deliver(value)
	}
}

// deliver answers with a value that nobody has written.
func (s *serving) deliver(value any) {
	switch v := value.(type) {
	case Status:
		if v != http.StatusOK { // a fallback's
			answer(s.writer.inner, s.request, int(v), "")
			return
		}
		s.writer.sync() // the server writes the header, without a body
	case http.Handler:
		v.ServeHTTP(s.writer.inner, s.request)
	default:
		refuse(s.writer.inner, s.request, &holdfast.ResultTypeError{
			Want: "http.Handler", Got: fmt.Sprintf("%T", value),
		})
	}
}

// Outcome implements [policy.Judge].
func (s *serving) Outcome(value any, err error) policy.Outcome { return Classify(value, err) }

// Again implements [policy.Judge]: the request's body may have been read, and the client
// can try again itself.
func (s *serving) Again(any, error) (wait time.Duration, ok bool) { return 0, false }
