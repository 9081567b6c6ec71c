package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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

// BEHAVIOUR 68: of the 24 orders of four policies, those with the retry inside the breaker
// are refused, and told the right one.
func TestOrders(t *testing.T) {
	policies := []policy.Policy{timeout.New(time.Second), bulkhead.New(20), breaker.New("payments"), retry.New()}
	for _, order := range permutations(len(policies)) {
		var chosen []policy.Policy
		for _, i := range order {
			chosen = append(chosen, policies[i])
		}
		p, err := holdfast.Build(chosen...)
		if slices.Index(order, 3) > slices.Index(order, 2) {
			if err != nil || p == nil {
				t.Errorf("order %v: %v", order, err)
			}
			continue
		}
		if p != nil || err == nil {
			t.Errorf("order %v is not refused", order)
			continue
		}
		for _, want := range []string{
			`retry(attempts=3) is inside breaker("payments")`,
			`write Compose(timeout(1s), bulkhead(20), breaker("payments"), retry(attempts=3))`,
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("order %v: %v, want %s", order, err, want)
			}
		}
		if p := holdfast.Unchecked(chosen...); len(p.Policies()) != 4 {
			t.Errorf("Unchecked made %s", p)
		}
	}
}

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, shorter := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return all
}

func TestRefusedOrders(t *testing.T) {
	var (
		b      = breaker.New("payments")
		slots  = bulkhead.New(20)
		rate   = ratelimit.New(ratelimit.Per(100, time.Second), 20)
		again  = retry.New()
		cached = fallback.Value("x")
		second = timeout.New(time.Second)
	)
	tests := []struct {
		name     string
		policies []policy.Policy
		want     []string // in the message; nil: composes
	}{
		{"nothing", nil, nil},
		{"nil", []policy.Policy{second, nil}, []string{"policy 2 is nil", "write Compose(timeout(1s))"}},
		{"typed nil", []policy.Policy{(*breaker.Breaker)(nil)}, []string{"policy 1 is nil"}},
		{"nil func", []policy.Policy{policy.Func(nil)}, []string{"policy 1 is nil"}},
		{"nil pipeline", []policy.Policy{(*holdfast.Pipeline)(nil)}, []string{"policy 1 is nil"}},
		{"fallback in a retry", []policy.Policy{cached, again}, []string{"fallback is inside retry(attempts=3)", "write Compose(retry(attempts=3), fallback)"}},
		{"fallback in a breaker", []policy.Policy{cached, b}, []string{`fallback is inside breaker("payments")`}},
		{"fallback in a bulkhead", []policy.Policy{cached, slots}, []string{"fallback is inside bulkhead(20)"}},
		{"fallback in a timeout", []policy.Policy{cached, second}, nil},
		{"breaker twice", []policy.Policy{b, again, b}, []string{`breaker("payments") is given twice, as policies 1 and 3`}},
		{"bulkhead twice", []policy.Policy{slots, slots}, []string{"bulkhead(20) is given twice", "write Compose(bulkhead(20))"}},
		{"limiter twice", []policy.Policy{rate, rate}, []string{"ratelimit(100/1s, burst=20) is given twice"}},
		{"two breakers of one name", []policy.Policy{b, breaker.New("payments")}, nil},
		{"retry twice", []policy.Policy{again, again}, nil},
		{
			"outer timeout shorter",
			[]policy.Policy{timeout.New(2 * time.Second), again, second},
			[]string{"the outer timeout(1s) is not longer than timeout(2s)", "write Compose(timeout(1s), retry(attempts=3), timeout(2s))"},
		},
		{
			"outer timeout equal",
			[]policy.Policy{second, again, timeout.New(time.Second)},
			[]string{"is not longer than", "write Compose(timeout(1s), retry(attempts=3))"},
		},
		{
			"three timeouts",
			[]policy.Policy{timeout.New(3 * time.Second), again, timeout.New(2 * time.Second), second},
			[]string{"write Compose(timeout(1s), retry(attempts=3), timeout(2s), timeout(3s))"},
		},
		{"a limit per call is not compared", []policy.Policy{second, timeout.New(1, timeout.LimitFunc(func(context.Context) time.Duration { return 1 }))}, nil},
		{"through nested pipelines", []policy.Policy{holdfast.Compose(second, again), b}, []string{"retry(attempts=3) is inside"}},
		{"not inside an unchecked one", []policy.Policy{holdfast.Unchecked(again, b)}, nil},
		{"but around it", []policy.Policy{holdfast.Unchecked(again, b), slots, b}, []string{"given twice", "is inside"}},
		{"an unknown kind anywhere", []policy.Policy{nothing, again, nothing, b}, []string{"retry(attempts=3) is inside"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := holdfast.Build(tt.policies...)
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("error %v, want one: %t", err, tt.want != nil)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %s", err, want)
				}
			}
			if err == nil {
				return
			}
			defer func() {
				if got := recover(); got != err.Error() {
					t.Errorf("Compose panics with %v", got)
				}
			}()
			holdfast.Compose(tt.policies...)
		})
	}
	defer func() {
		if got := recover(); got != "holdfast: Unchecked: policy 1 is nil" {
			t.Errorf("Unchecked(nil) panics with %v", got)
		}
	}()
	holdfast.Unchecked(nil)
}

// nothing is a policy without a description.
var nothing = policy.Func(func(next policy.Handler) policy.Handler { return next })

func TestAdvice(t *testing.T) {
	second, b, again := timeout.New(time.Second), breaker.New("payments"), retry.New()
	slow := breaker.New("payments", breaker.SlowCalls(time.Second, .5, breaker.Last(10)))
	tests := []struct {
		name     string
		pipeline *holdfast.Pipeline
		want     []string // in each sentence, in order
	}{
		{"the documented order", full().Compose(), nil},
		{"no timeout inside", holdfast.Compose(b, second), []string{"no timeout inside"}},
		{"bulkhead outside", holdfast.Compose(second, b, bulkhead.New(2)), []string{"bulkhead(2) is outside breaker"}},
		{"retry without a breaker", holdfast.Compose(second, again), []string{"no breaker"}},
		{
			"two retries", holdfast.Compose(second, b, again, retry.New(retry.Attempts(4))),
			[]string{"multiply, to 12"},
		},
		{
			"not even once", holdfast.Compose(second, b, again, timeout.New(2999*time.Millisecond)),
			[]string{"cannot make all its attempts within timeout(2.999s): 3 of 1s take 3s"},
		},
		{"just once", holdfast.Compose(second, b, again, timeout.New(3*time.Second)), nil},
		{
			"slow calls around a queue",
			holdfast.Compose(second, bulkhead.New(2, bulkhead.MaxQueue(1)), ratelimit.New(ratelimit.Per(1, 1), 1, ratelimit.MaxWait(1)), slow),
			[]string{"around bulkhead(2), whose queue", "around ratelimit(1/1ns, burst=1), whose queue"},
		},
		{"a wait without a queue", holdfast.Compose(second, bulkhead.New(2, bulkhead.MaxWait(1)), b), []string{"no MaxQueue"}},
		{"slow calls around what does not wait", holdfast.Compose(second, bulkhead.New(2), slow), nil},
		{
			"slow calls around a queue without a wait",
			holdfast.Compose(second, bulkhead.New(2, bulkhead.MaxQueue(1), bulkhead.MaxWait(0)), slow), nil,
		},
		{"in an unchecked order", holdfast.Unchecked(again, b), []string{"no timeout inside"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			advice := tt.pipeline.Advice()
			if len(advice) != len(tt.want) {
				t.Fatalf("advice %q, want %d sentences", advice, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.Contains(advice[i], want) || !strings.HasSuffix(advice[i], ".") {
					t.Errorf("advice %q, want %q", advice[i], want)
				}
			}
		})
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

func TestEvents(t *testing.T) {
	b := breaker.New("payments", breaker.ConsecutiveFailures(1))
	inner := holdfast.Compose(b).Named("inner")
	p := holdfast.Compose(inner, retry.New(retry.Constant(0))).Named("checkout")
	events := policytest.Record(p)
	holdfast.Run(t.Context(), p, func(context.Context) error { return errDown })
	want := []policy.Kind{
		policy.CircuitChanged, policy.AttemptDone, policy.RetryScheduled,
		policy.CircuitRejected, policy.AttemptDone, policy.RetryExhausted, policy.CallDone,
	}
	if got := events.Kinds(); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	done := events.Events()[len(want)-1]
	if done.Pipeline != "checkout" || done.Outcome != policy.Failure || !errors.Is(done.Err, errDown) {
		t.Errorf("call.done %+v", done)
	}

	// The outcome of a call whose caller has left, and of one that panics.
	ctx, cancel := context.WithCancel(t.Context())
	holdfast.Run(ctx, holdfast.Compose().Named("x"), func(context.Context) error { return nil })
	plain := holdfast.Compose()
	events = policytest.Record(plain)
	holdfast.Run(ctx, plain, func(context.Context) error { cancel(); return ctx.Err() })
	holdfast.Run(ctx, plain, func(context.Context) error { return nil })
	func() {
		defer func() { recover() }()
		holdfast.Run(t.Context(), plain, func(context.Context) error { panic(errDown) })
	}()
	var outcomes []policy.Outcome
	for _, e := range events.Events() {
		outcomes = append(outcomes, e.Outcome)
	}
	if !slices.Equal(outcomes, []policy.Outcome{policy.Ignored, policy.Ignored, policy.Failure}) {
		t.Errorf("outcomes %v", outcomes)
	}
}

// A layer that stands in a pipeline twice tells once.
func TestEventsOfALayerTwice(t *testing.T) {
	again := retry.New(retry.Attempts(1))
	p := holdfast.Compose(again, holdfast.Compose(again))
	events := policytest.Record(p)
	holdfast.Run(t.Context(), p, func(context.Context) error { return nil })
	if want := []policy.Kind{policy.AttemptDone, policy.AttemptDone, policy.CallDone}; !slices.Equal(events.Kinds(), want) {
		t.Errorf("events %v, want %v", events.Kinds(), want)
	}
}

// keeper is a call whose value owns something.
type keeper struct {
	policy.CallFunc
	discarded int
}

func (k *keeper) Keep(any, func()) bool { return true }
func (k *keeper) Discard(any)           { k.discarded++ }

// A value that the panic of an observer keeps from the caller is discarded.
func TestObserverPanics(t *testing.T) {
	p := holdfast.Compose()
	p.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) { panic(errDown) }))
	call := &keeper{CallFunc: func(context.Context) (any, error) { return "body", nil }}
	defer func() {
		if got := recover(); got != errDown || call.discarded != 1 {
			t.Errorf("recovered %v, discarded %d times, want once", got, call.discarded)
		}
	}()
	p.Invoke(t.Context(), call)
}

func TestUnsubscribe(t *testing.T) {
	p := full().Compose()
	told := 0
	cancel := p.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) { told++ }))
	cancel()
	cancel()
	holdfast.Run(t.Context(), p, func(context.Context) error { return nil })
	if told != 0 {
		t.Errorf("told %d events after cancel", told)
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

// A row of the composition table: what a pipeline makes of a dependency that answers so.
func TestComposition(t *testing.T) {
	tests := []struct {
		name     string
		pipeline func() *holdfast.Pipeline
		steps    []policytest.Step
		calls    int // how often the dependency was called
		took     time.Duration
		errs     []error
	}{
		{
			"BEHAVIOUR 37: the breaker ends the retries",
			func() *holdfast.Pipeline {
				return holdfast.Compose(breaker.New("payments", breaker.ConsecutiveFailures(3)), retry.New(retry.Attempts(7), retry.Constant(time.Second)))
			},
			[]policytest.Step{policytest.Fail(errDown)},
			3, 3 * time.Second,
			[]error{errDown, breaker.ErrOpen, retry.ErrExhausted},
		},
		{
			"BEHAVIOUR 40: each attempt is bounded, and repeated",
			func() *holdfast.Pipeline {
				return holdfast.Compose(timeout.New(time.Second), retry.New(retry.Attempts(4), retry.Constant(0)))
			},
			[]policytest.Step{policytest.Block()},
			4, 4 * time.Second,
			[]error{timeout.ErrExceeded, context.DeadlineExceeded, retry.ErrExhausted},
		},
		{
			"the total timeout cuts the wait short before it begins",
			func() *holdfast.Pipeline {
				return holdfast.Compose(retry.New(retry.Constant(time.Minute)), timeout.New(10*time.Second))
			},
			[]policytest.Step{policytest.Fail(errDown)},
			1, 0,
			[]error{errDown, context.DeadlineExceeded, retry.ErrExhausted},
		},
		{
			"the total timeout strikes in an attempt",
			func() *holdfast.Pipeline {
				return holdfast.Compose(timeout.New(4*time.Second), retry.New(retry.Constant(0)), timeout.New(10*time.Second))
			},
			[]policytest.Step{policytest.Block()},
			3, 10 * time.Second,
			[]error{timeout.ErrExceeded},
		},
		{
			"a timeout outside the breaker tells it nothing",
			func() *holdfast.Pipeline {
				return holdfast.Compose(breaker.New("payments", breaker.ConsecutiveFailures(1)), retry.New(retry.Attempts(1)), timeout.New(time.Second))
			},
			[]policytest.Step{policytest.Block()},
			1, time.Second,
			[]error{timeout.ErrExceeded},
		},
		{
			"recovered by a retry",
			func() *holdfast.Pipeline {
				l := full()
				l.Retry = retry.New(retry.Constant(time.Second))
				return l.Compose()
			},
			[]policytest.Step{policytest.Fail(errDown), policytest.Fail(errDown), policytest.Return("paid")},
			3, 2 * time.Second, nil,
		},
		{
			"answered by the fallback",
			func() *holdfast.Pipeline { l := full(); l.Retry = retry.New(retry.Constant(0)); return l.Compose() },
			[]policytest.Step{policytest.Fail(errDown)},
			3, 0, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script, start := policytest.Script(tt.steps...), time.Now()
				_, err := holdfast.Do(t.Context(), tt.pipeline(), script.Invoke)
				if script.Calls() != tt.calls || time.Since(start) != tt.took {
					t.Errorf("%d calls in %s, want %d in %s", script.Calls(), time.Since(start), tt.calls, tt.took)
				}
				if (err == nil) != (tt.errs == nil) {
					t.Errorf("error %v", err)
				}
				for _, want := range tt.errs {
					if !errors.Is(err, want) {
						t.Errorf("error %v, want one that Is %v", err, want)
					}
				}
			})
		})
	}
}

// call.done tells what Do answers, also where a policy answered with another type.
func TestMismatchIsTold(t *testing.T) {
	p := holdfast.Compose(fallback.Value("x"))
	events := policytest.Record(p)
	_, err := holdfast.Do(t.Context(), p, func(context.Context) (int, error) { return 0, errDown })
	done := events.Events()[1]
	if done.Kind != policy.CallDone || done.Outcome != policy.Failure || done.Err == nil || err == nil || done.Err.Error() != err.Error() {
		t.Errorf("call.done tells %v, %v, and Do answers %v", done.Outcome, done.Err, err)
	}
	if want := "holdfast: a policy answered with string, want int"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
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
