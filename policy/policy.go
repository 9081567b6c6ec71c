package policy

import (
	"context"
	"time"
)

// A Call is one protected operation. A policy invokes it once per attempt,
// possibly from several goroutines at the same time. Each attempt's value travels
// back by value, so attempts never share a variable.
type Call interface {
	Invoke(ctx context.Context) (any, error)
}

// CallFunc is a function as a [Call].
type CallFunc func(ctx context.Context) (any, error)

// Invoke calls f.
func (f CallFunc) Invoke(ctx context.Context) (any, error) { return f(ctx) }

// A Handler runs a call, bare or under policies. It is safe for concurrent use.
type Handler func(ctx context.Context, call Call) (any, error)

// Invoke is the innermost [Handler]: it runs the call, bare.
func Invoke(ctx context.Context, call Call) (any, error) { return call.Invoke(ctx) }

// A Policy puts behaviour around a [Handler].
//
// Wrap is called at composition, once per pipeline that holds the policy; the
// Handler that it returns is called for every call, concurrently. State lives in
// the policy, not in the Handler, so that pipelines share it. The Handler passes
// on the Call that it was given: a wrapper would hide [Keeper] and [Judge].
type Policy interface {
	Wrap(next Handler) Handler
}

// Func is a function as a [Policy].
type Func func(next Handler) Handler

// Wrap calls f.
func (f Func) Wrap(next Handler) Handler { return f(next) }

// A Keeper is a [Call] whose value owns something after Invoke has returned, such
// as the open body of a response. Its methods must be safe for concurrent use.
type Keeper interface {
	Call
	// Keep takes over release and runs it once, when value is done with. It may be
	// called several times for one value. False: value owns nothing, and the
	// caller of Keep releases now.
	Keep(value any, release func()) bool
	// Discard is told that value will not reach the caller: it frees what value
	// owns and runs what Keep took.
	Discard(value any)
}

// A Judge is a [Call] that knows what its outcomes mean, as an HTTP request does. Its
// methods must be safe for concurrent use.
type Judge interface {
	Call
	// Outcome serves policies that were given no [Classifier]. A zero Outcome is
	// taken as what err alone says.
	Outcome(value any, err error) Outcome
	// Again says whether an outcome calls for another attempt and allows it, and how
	// long the other side wants us to wait before, 0 if it did not say. A retry
	// without a classifier of its own repeats where ok; one with a classifier where
	// both say so.
	Again(value any, err error) (wait time.Duration, ok bool)
}

// Discard hands value to call if it is a [Keeper], for a value that will not reach
// the caller. A nil value owns nothing.
func Discard(call Call, value any) {
	if value == nil {
		return
	}
	if k, ok := call.(Keeper); ok {
		k.Discard(value)
	}
}
