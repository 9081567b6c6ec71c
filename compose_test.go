package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/ratelimit"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

var errDown = errors.New("down")

// full is a pipeline with every layer.
func full() holdfast.Layers {
	return holdfast.Layers{
		Name:      "checkout",
		Timeout:   timeout.New(time.Second),
		Bulkhead:  bulkhead.New(20),
		RateLimit: ratelimit.New(ratelimit.Per(100, time.Second), 20),
		Breaker:   breaker.New("payments"),
		Retry:     retry.New(),
		Total:     timeout.New(10*time.Second, timeout.Name("total")),
		Fallback:  fallback.Value("cached"),
	}
}

func TestDo(t *testing.T) {
	p := holdfast.Compose(retry.New(retry.Attempts(1)), fallback.Value("x", fallback.If(policy.IgnoreErrors(errDown, context.Canceled))))
	number := 1
	if got, err := holdfast.Do(t.Context(), p, func(context.Context) (*int, error) { return &number, nil }); got != &number || err != nil {
		t.Errorf("a pointer comes back as %v, %v", got, err)
	}
	if got, err := holdfast.Do(t.Context(), p, func(context.Context) ([2]int, error) { return [2]int{1, 2}, errDown }); got != [2]int{1, 2} || !errors.Is(err, errDown) {
		t.Errorf("a value beside an error comes back as %v, %v", got, err)
	}

	// BEHAVIOUR 71: nil is T's zero value, and a typed nil error is an error.
	if got, err := holdfast.Do(t.Context(), p, func(context.Context) (fmt.Stringer, error) { return nil, nil }); got != nil || err != nil {
		t.Errorf("a nil interface comes back as %v, %v", got, err)
	}
	if got, err := holdfast.Do(t.Context(), p, func(context.Context) (*int, error) { return nil, nil }); got != nil || err != nil {
		t.Errorf("a nil pointer comes back as %v, %v", got, err)
	}
	var typedNil *breaker.CircuitOpenError
	if err := holdfast.Run(t.Context(), holdfast.Compose(), func(context.Context) error { return nilError{typedNil} }); err != (nilError{typedNil}) {
		t.Errorf("a typed nil error comes back as %#v", err)
	}

	// BEHAVIOUR 67: a value of another type.
	down := func(context.Context) (int, error) { return 0, errors.New("other") }
	_, err := holdfast.Do(t.Context(), p, down)
	mismatch, ok := errors.AsType[*holdfast.ResultTypeError](err)
	if !ok || *mismatch != (holdfast.ResultTypeError{Want: "int", Got: "string"}) {
		t.Errorf("a string for an int: %v", err)
	}
	if err := holdfast.Run(t.Context(), p, func(context.Context) error { return errors.New("other") }); err != nil {
		t.Errorf("under Run any value does, but: %v", err)
	}
}

// nilError makes a typed nil comparable as an error.
type nilError struct{ *breaker.CircuitOpenError }

func TestDoneContextAsksNobody(t *testing.T) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	asked := policy.Func(func(policy.Handler) policy.Handler {
		return func(context.Context, policy.Call) (any, error) {
			t.Error("a policy was asked")
			return nil, nil
		}
	})
	for _, p := range []*holdfast.Pipeline{holdfast.Compose(), holdfast.Compose(asked), full().Compose()} {
		err := holdfast.Run(ctx, p, func(context.Context) error { t.Error("the call ran"); return nil })
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("%s: error %v", p, err)
		}
	}
}

// BEHAVIOUR 70.
func TestString(t *testing.T) {
	p := full().Compose()
	const want = `fallback → timeout(10s) → retry(attempts=3) → breaker("payments") → ratelimit(100/1s, burst=20) → bulkhead(20) → timeout(1s) → call`
	if got := p.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := holdfast.Compose().String(); got != "call" {
		t.Errorf("an empty pipeline is %s", got)
	}
	if got := holdfast.Compose(nothing, holdfast.Compose(retry.New()), named{nothing}).String(); got != `cache("prices") → retry(attempts=3) → policy.Func → call` {
		t.Errorf("a pipeline of others is %s", got)
	}
}

// named is a policy of a user's own kind.
type named struct{ policy.Policy }

func (named) Describe() policy.Description { return policy.Description{Kind: "cache", Name: "prices"} }

func TestDescribe(t *testing.T) {
	d := holdfast.Compose(full().Compose()).Named("outer").Describe()
	if d.Kind != "pipeline" || d.Name != "outer" || len(d.Layers) != 1 || d.Layers[0].Name != "checkout" {
		t.Fatalf("described as %+v", d)
	}
	var kinds []string
	for _, layer := range d.Layers[0].Layers {
		kinds = append(kinds, layer.Kind)
	}
	if got := strings.Join(kinds, " "); got != "fallback timeout retry breaker ratelimit bulkhead timeout" {
		t.Errorf("layers %s, want the outermost first", got)
	}
}

// BEHAVIOUR 69: a breaker counts the calls of every pipeline that it is in, whatever their
// type.
func TestSharedBreaker(t *testing.T) {
	b := breaker.New("payments")
	numbers, texts := holdfast.Compose(b), holdfast.Compose(b, retry.New(retry.Attempts(1)))
	for range 3 {
		holdfast.Do(t.Context(), numbers, func(context.Context) (int, error) { return 0, errDown })
		holdfast.Do(t.Context(), texts, func(context.Context) (string, error) { return "", errDown })
	}
	if s := b.Stats(); s.State != breaker.Open || s.Rejected != 1 {
		t.Errorf("stats %+v, want open after five failures", s)
	}
}

func TestNamedSharesPoliciesNotSubscriptions(t *testing.T) {
	p := full().Compose()
	events := policytest.Record(p)
	renamed := p.Named("other")
	holdfast.Run(t.Context(), renamed, func(context.Context) error { return nil })
	if slices.Contains(events.Kinds(), policy.CallDone) {
		t.Error("a copy's call.done is told to the original's observers")
	}
	if !slices.Equal(p.Policies(), renamed.Policies()) {
		t.Error("a copy has other policies")
	}
}

func TestKeepsTheRules(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return full().Compose() })
	policytest.Run(t, func() policy.Policy { return holdfast.Compose() })
}

// What a success costs in allocations.
func TestAllocations(t *testing.T) {
	layers := full()
	without := layers
	without.Timeout, without.Total = nil, nil
	number := new(int)
	fn := func(context.Context) (*int, error) { return number, nil }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, tt := range []struct {
		name string
		p    *holdfast.Pipeline
		want float64
	}{
		{"empty", holdfast.Compose(), 0},
		{"without a timeout", withoutLimit(without).Compose(), 0},
		{"two timeouts, never asked for Done", withoutLimit(layers).Compose(), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if n := testing.AllocsPerRun(1000, func() { holdfast.Do(ctx, tt.p, fn) }); n > tt.want {
				t.Errorf("%v allocations, want at most %v", n, tt.want)
			}
		})
	}
}

// withoutLimit has a rate limit that thousands of calls at once do not exceed.
func withoutLimit(l holdfast.Layers) holdfast.Layers {
	l.RateLimit = ratelimit.New(ratelimit.Per(1_000_000_000, time.Second), 1_000_000)
	return l
}

func TestNoPipeline(t *testing.T) {
	for _, p := range []*holdfast.Pipeline{nil, {}} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, "holdfast: a nil or zero Pipeline") {
					t.Errorf("panics with %v", got)
				}
			}()
			holdfast.Run(t.Context(), p, func(context.Context) error { return nil })
		}()
	}
}

func TestLayersBuild(t *testing.T) {
	p, err := full().Build()
	if err != nil || p.String() != full().Compose().String() || p.Describe().Name != "checkout" {
		t.Errorf("built %s, %v", p, err)
	}
	short := full()
	short.Total = timeout.New(time.Millisecond)
	if p, err := short.Build(); p != nil || err == nil || !strings.Contains(err.Error(), "timeout(1ms) is not longer than timeout(1s)") {
		t.Errorf("built %v, %v", p, err)
	}
}
