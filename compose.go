package holdfast

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/ratelimit"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// A Pipeline runs calls under a chain of policies. Make it with [Compose] or
// [Layers], once per dependency. It is immutable, safe for concurrent use, and
// must not be copied. It is a [policy.Policy] itself, so it can be a layer of another.
type Pipeline struct {
	name     string
	policies []policy.Policy // from the call outward, as given
	handler  policy.Handler
	events   policy.Events
}

// Compose chains policies from the call outward: each wraps those before it.
//
//	Compose(timeout, bulkhead, breaker, retry) // runs retry(breaker(bulkhead(timeout(call))))
//
// It panics on an order that cannot work, with the message of [Build]'s error.
func Compose(policies ...policy.Policy) *Pipeline {
	p, err := Build(policies...)
	if err != nil {
		panic(err.Error())
	}
	return p
}

// Build is [Compose] with an error instead of a panic. Refused are: a retry inside a
// breaker, a fallback inside a retry, breaker or bulkhead, the same breaker,
// bulkhead or limiter twice, a nil policy, and an outer timeout that is not longer
// than an inner one. Pairs inside a nested pipeline are that pipeline's affair.
func Build(policies ...policy.Policy) (*Pipeline, error) {
	if err := checkOrder(policies); err != nil {
		return nil, err
	}
	return chain(policies), nil
}

// Unchecked is [Compose] for any order, also one that Compose refuses. Only a nil
// policy panics.
func Unchecked(policies ...policy.Policy) *Pipeline {
	for i, p := range policies {
		if isNil(p) {
			panic(fmt.Sprintf("holdfast: Unchecked: policy %d is nil", i+1))
		}
	}
	return chain(policies)
}

// Do runs fn under p and returns its result; a value beside an error is kept. If
// ctx is done, nothing is run and the error Is ctx.Err and context.Cause.
//
// A value that is not pointer-shaped is boxed on its way through the policies, at
// the cost of one allocation, and so is an fn that captures variables. Beyond that
// a pipeline allocates nothing on success, except for a timeout its context.
//
// The error is a *[ResultTypeError] if a policy, such as a fallback, answers with a
// value that is no T. Do panics if p is nil or zero.
func Do[T any](ctx context.Context, p *Pipeline, fn func(ctx context.Context) (T, error)) (T, error) {
	value, err := p.Invoke(ctx, valueCall[T](fn))
	if typed, ok := value.(T); ok {
		return typed, err
	}
	return noValue[T](value, err)
}

// Run is [Do] for a function without a value. Values that policies answer with are
// dropped.
func Run(ctx context.Context, p *Pipeline, fn func(ctx context.Context) error) error {
	_, err := p.Invoke(ctx, errorCall(fn))
	return err
}

// Invoke runs a [policy.Call] of your own under p, such as one that is a
// [policy.Keeper] or a [policy.Judge], on the terms of [Do]. Functions are run by Do and
// [Run].
func (p *Pipeline) Invoke(ctx context.Context, call policy.Call) (any, error) {
	if p == nil || p.handler == nil {
		panic("holdfast: a nil or zero Pipeline: make it with Compose or Layers")
	}
	if p.events.Observed() {
		return p.observed(ctx, call)
	}
	return p.handler(ctx, call)
}

// Named returns a copy of p with a name, which events and descriptions carry. The
// copy shares p's policies, but not its subscriptions.
func (p *Pipeline) Named(name string) *Pipeline {
	return &Pipeline{name: name, policies: p.policies, handler: p.handler}
}

// Wrap implements [policy.Policy]: p's policies around next. Calls through it emit no
// call.done: that is told by the pipeline that [Do], [Run] or Invoke was called with.
func (p *Pipeline) Wrap(next policy.Handler) policy.Handler { return wrapAll(p.policies, next) }

// Policies returns p's policies from the call outward, those of nested pipelines in
// their place.
func (p *Pipeline) Policies() []policy.Policy {
	var flat []policy.Policy
	for _, layer := range p.policies {
		flat = append(flat, flatten(layer)...)
	}
	return flat
}

// Describe implements [policy.Describer]. A policy that cannot describe itself is
// described by its Go type.
func (p *Pipeline) Describe() policy.Description {
	d := policy.Description{Kind: "pipeline", Name: p.name}
	for _, layer := range slices.Backward(p.policies) {
		d.Layers = append(d.Layers, describe(layer))
	}
	return d
}

// String shows the layers as a call travels through them, each as its constructor was
// called, the breaker by its name:
//
//	retry(attempts=3) → breaker("payments") → bulkhead(20) → timeout(1s) → call
func (p *Pipeline) String() string {
	var s strings.Builder
	for _, layer := range slices.Backward(p.Policies()) {
		s.WriteString(label(layer) + " → ")
	}
	return s.String() + "call"
}

// Subscribe implements [policy.Observable]: p's own call.done, and the events of
// every layer. A layer that other pipelines share tells of their calls too.
func (p *Pipeline) Subscribe(o policy.Observer) (cancel func()) {
	cancels := []func(){p.events.Subscribe(o)}
	layers := p.Policies()
	for i, layer := range layers {
		twice := slices.ContainsFunc(layers[:i], func(other policy.Policy) bool { return identical(other, layer) })
		if observable, ok := layer.(policy.Observable); ok && !twice {
			cancels = append(cancels, observable.Subscribe(o))
		}
	}
	return func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// A ResultTypeError is the error of [Do] where a policy answered with a value that is
// not of the call's type. Want and Got are Go types.
type ResultTypeError struct{ Want, Got string }

// Error names both types.
func (e *ResultTypeError) Error() string {
	return fmt.Sprintf("holdfast: a policy answered with %s, want %s", e.Got, e.Want)
}

// valueCall and errorCall are functions as a [policy.Call]. Being functions, they are
// pointer-shaped: making an interface of one allocates nothing.
type (
	valueCall[T any] func(ctx context.Context) (T, error)
	errorCall        func(ctx context.Context) error
)

func (f valueCall[T]) Invoke(ctx context.Context) (any, error) { return f(ctx) }

// mismatch is the verdict on a policy that answered with a value that is no T. An untyped
// nil is T's zero value.
func (valueCall[T]) mismatch(value any) error {
	if _, ok := value.(T); ok || value == nil {
		return nil
	}
	return &ResultTypeError{Want: reflect.TypeFor[T]().String(), Got: fmt.Sprintf("%T", value)}
}

func (f errorCall) Invoke(ctx context.Context) (any, error) { return nil, f(ctx) }

// noValue is Do's result where the pipeline's value is no T.
func noValue[T any](value any, err error) (zero T, _ error) {
	return zero, and(err, valueCall[T].mismatch(nil, value))
}

// and joins two errors, either of which may be nil.
func and(err, other error) error {
	switch {
	case err == nil:
		return other
	case other == nil:
		return err
	default:
		return fmt.Errorf("%w; %w", err, other)
	}
}

func chain(policies []policy.Policy) *Pipeline {
	policies = slices.Clone(policies)
	return &Pipeline{policies: policies, handler: wrapAll(policies, policy.Invoke)}
}

// wrapAll puts policies around handler. What it returns asks nobody if the caller has
// already given up: the toolkit's own policies look at ctx first, for the others we do.
func wrapAll(policies []policy.Policy, handler policy.Handler) policy.Handler {
	var outermost policy.Policy
	for _, outermost = range policies {
		handler = outermost.Wrap(handler)
	}
	switch outermost.(type) {
	case *timeout.Timeout, *bulkhead.Bulkhead, *ratelimit.Limiter, *breaker.Breaker, *retry.Retry, *fallback.Fallback, *Pipeline:
		return handler
	}
	return func(ctx context.Context, call policy.Call) (any, error) {
		if ctx.Err() != nil {
			return nil, policy.ContextError(ctx)
		}
		return handler(ctx, call)
	}
}

// observed is a call with a call.done at its end. A value that the panic of an observer
// keeps from the caller is discarded.
func (p *Pipeline) observed(ctx context.Context, call policy.Call) (value any, err error) {
	start, returned, told := policy.SystemClock.Elapsed(), false, false
	tell := func(outcome policy.Outcome, err error) {
		p.events.Emit(ctx, policy.Event{
			Kind:     policy.CallDone,
			Pipeline: p.name,
			Outcome:  outcome,
			Err:      err,
			Duration: policy.SystemClock.Elapsed() - start,
		})
	}
	defer func() {
		switch {
		case !returned:
			guard.Quiet(func() { tell(policy.Failure, nil) })
		case !told:
			policy.Discard(call, value)
		}
	}()
	value, err = p.handler(ctx, call)
	returned = true
	tell(p.verdict(ctx, call, value, err))
	told = true
	return value, err
}

// verdict is what call.done tells of an outcome: what Do makes of it.
func (p *Pipeline) verdict(ctx context.Context, call policy.Call, value any, err error) (policy.Outcome, error) {
	if typed, ok := call.(interface{ mismatch(value any) error }); ok {
		if mismatch := typed.mismatch(value); mismatch != nil {
			return policy.Failure, and(err, mismatch)
		}
	}
	if err != nil && ctx.Err() != nil {
		return policy.Ignored, err
	}
	return policy.Judgement(nil, call, value, err), err
}

// flatten returns p, or what is in it if it is a pipeline.
func flatten(p policy.Policy) []policy.Policy {
	if nested, ok := p.(*Pipeline); ok {
		return nested.Policies()
	}
	return []policy.Policy{p}
}

func describe(p policy.Policy) policy.Description {
	if d, ok := p.(policy.Describer); ok {
		return d.Describe()
	}
	return policy.Description{Kind: fmt.Sprintf("%T", p)}
}

// label shows p in a sentence or a picture.
func label(p policy.Policy) string {
	d := describe(p)
	has := func(key string) bool { return !d.Param(key).Equal(slog.Value{}) }
	switch {
	case d.Kind == kindTimeout && has("limit"), d.Kind == kindBulkhead && has("limit"):
		return fmt.Sprintf("%s(%s)", d.Kind, d.Param("limit"))
	case d.Kind == kindRateLimit && has("rate"):
		return fmt.Sprintf("%s(%s, burst=%s)", d.Kind, d.Param("rate"), d.Param("burst"))
	case d.Kind == kindRetry && has("attempts"):
		return fmt.Sprintf("%s(attempts=%s)", d.Kind, d.Param("attempts"))
	case d.Kind == kindFallback, d.Name == "", d.Name == d.Kind && d.Kind != kindBreaker:
		return d.Kind
	default:
		return fmt.Sprintf("%s(%q)", d.Kind, d.Name)
	}
}
