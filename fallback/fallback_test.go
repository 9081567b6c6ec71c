package fallback_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

var (
	errCall = errors.New("call failed")
	errOwn  = errors.New("fallback failed")
)

func returning(value any, err error) policy.CallFunc {
	return func(context.Context) (any, error) { return value, err }
}

// failingStatus calls a value of 500 and more a Failure.
func failingStatus(value any, err error) policy.Outcome {
	if status, ok := value.(int); ok && err == nil && status >= 500 {
		return policy.Failure
	}
	return policy.DefaultClassifier(value, err)
}

func TestAnswer(t *testing.T) {
	tests := []struct {
		name     string
		fallback *fallback.Fallback
		call     policy.Call
		value    any
		errs     []error // all reachable; none: no error
	}{
		{"success passes", fallback.Value("x"), returning("ok", nil), "ok", nil},
		{"value for an error", fallback.Value("x"), returning(nil, errCall), "x", nil},
		{"value for a refusal", fallback.Value("x"), returning(nil, policy.ErrRejected), "x", nil},
		{
			"If leaves others alone", fallback.Value("x", fallback.If(policy.IgnoreErrors(errCall))),
			returning("v", errCall), "v",
			[]error{errCall},
		},
		{"If takes a value", fallback.Value(200, fallback.If(failingStatus)), returning(503, nil), 200, nil},
		{
			"BEHAVIOUR 66: own error beside the call's",
			fallback.Func(func(_ context.Context, err error) (string, error) { return "partial", errOwn }),
			returning(nil, errCall), "partial",
			[]error{errCall, errOwn},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			value, err := tt.fallback.Wrap(policy.Invoke)(t.Context(), tt.call)
			if value != tt.value {
				t.Errorf("value %v, want %v", value, tt.value)
			}
			if (err != nil) != (len(tt.errs) > 0) {
				t.Errorf("error %v, want one: %t", err, len(tt.errs) > 0)
			}
			for _, want := range tt.errs {
				if !errors.Is(err, want) {
					t.Errorf("error %v, want one that Is %v", err, want)
				}
			}
		})
	}
}

// BEHAVIOUR 66: the caller's cancellation is never answered for, its deadline is.
func TestCallerGone(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()

	tests := []struct {
		name    string
		ctx     context.Context
		during  bool // the ctx ends during the call, not before it
		answers bool
	}{
		{"cancelled before", canceled, false, false},
		{"cancelled during", canceled, true, false},
		{"expired before", expired, false, false},
		{"expired during", expired, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := fallback.Func(func(ctx context.Context, err error) (string, error) {
				if !errors.Is(err, tt.ctx.Err()) {
					t.Errorf("asked with %v, want the call's error", err)
				}
				return "x", nil
			})
			ctx := &lateContext{Context: tt.ctx, ended: !tt.during}
			_, err := f.Wrap(policy.Invoke)(ctx, policy.CallFunc(func(context.Context) (any, error) {
				if !tt.during {
					t.Error("the call ran")
				}
				ctx.ended = true
				return nil, ctx.Err()
			}))
			if answered := err == nil; answered != tt.answers {
				t.Errorf("error %v, want an answer: %t", err, tt.answers)
			}
		})
	}
}

// lateContext hides that its context is done until ended is set.
type lateContext struct {
	context.Context
	ended bool
}

func (c *lateContext) Err() error {
	if !c.ended {
		return nil
	}
	return c.Context.Err()
}

// judged is a call whose own judgement is Failure, and which owns its value.
type judged struct {
	value     any
	discarded []any
}

func (j *judged) Invoke(context.Context) (any, error)        { return j.value, nil }
func (j *judged) Outcome(any, error) policy.Outcome          { return policy.Failure }
func (j *judged) Again(any, error) (time.Duration, bool)     { return 0, false }
func (j *judged) Keep(value any, release func()) (kept bool) { return false }
func (j *judged) Discard(value any)                          { j.discarded = append(j.discarded, value) }

// keeper is a call that leaves judgement to others, and owns its value.
type keeper struct {
	policy.Call
	discarded int
}

func (k *keeper) Keep(any, func()) bool { return false }
func (k *keeper) Discard(any)           { k.discarded++ }

func TestReturnedValueIsNotDiscarded(t *testing.T) {
	for name, f := range map[string]*fallback.Fallback{
		"default": fallback.Value("x"),
		"If":      fallback.Value("x", fallback.If(failingStatus)),
	} {
		call := &keeper{Call: returning("body", nil)}
		value, err := f.Wrap(policy.Invoke)(t.Context(), call)
		if value != "body" || err != nil || call.discarded != 0 {
			t.Errorf("%s: got %v, %v, discarded %d times", name, value, err, call.discarded)
		}
	}
}

func TestReplacedValueIsDiscarded(t *testing.T) {
	call := &judged{value: "body"}
	value, err := fallback.Value("x").Wrap(policy.Invoke)(t.Context(), call)
	if value != "x" || err != nil {
		t.Errorf("got %v, %v, want the fallback's value", value, err)
	}
	if len(call.discarded) != 1 || call.discarded[0] != "body" {
		t.Errorf("discarded %v, want the call's value", call.discarded)
	}
}

// A value that the panic of a classifier keeps from the caller is discarded.
func TestClassifierPanics(t *testing.T) {
	call := &judged{value: "body"}
	defer func() {
		if got := recover(); got != errOwn || len(call.discarded) != 1 {
			t.Errorf("recovered %v, discarded %v, want the call's value", got, call.discarded)
		}
	}()
	f := fallback.Value("x", fallback.If(func(any, error) policy.Outcome { panic(errOwn) }))
	f.Wrap(policy.Invoke)(t.Context(), call)
}

// And so is an answer that the panic of an observer keeps from the caller.
func TestObserverPanics(t *testing.T) {
	for name, own := range map[string]error{"used": nil, "failed": errOwn} {
		call := &judged{value: "body"}
		f := fallback.Func(func(context.Context, error) (string, error) { return "answer", own })
		f.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) { panic("observer") }))
		func() {
			defer func() {
				if got := recover(); got != "observer" {
					t.Errorf("%s: recovered %v, want the observer's", name, got)
				}
			}()
			f.Wrap(policy.Invoke)(t.Context(), call)
		}()
		if len(call.discarded) != 2 || call.discarded[1] != "answer" {
			t.Errorf("%s: discarded %v, want the call's value and the answer", name, call.discarded)
		}
	}
}

func TestEvents(t *testing.T) {
	f := fallback.Func(func(_ context.Context, err error) (int, error) {
		if errors.Is(err, errCall) {
			return 1, nil
		}
		return 0, errOwn
	}, fallback.Name("cache"))
	var got []policy.Event
	cancel := f.Subscribe(policy.ObserverFunc(func(_ context.Context, e policy.Event) { got = append(got, e) }))
	handler := f.Wrap(policy.Invoke)
	for _, call := range []policy.Call{returning(1, nil), returning(0, errCall), returning(0, errors.New("other"))} {
		handler(t.Context(), call)
	}
	cancel()
	handler(t.Context(), returning(0, errCall))

	if len(got) != 2 || got[0].Kind != policy.FallbackUsed || got[1].Kind != policy.FallbackFailed {
		t.Fatalf("events %v, want fallback.used, fallback.failed", got)
	}
	for _, e := range got {
		if e.Policy != "fallback" || e.Name != "cache" || e.Time.IsZero() || e.Err == nil {
			t.Errorf("event %+v lacks a field", e)
		}
	}
}

func TestPanicAndGoexitPass(t *testing.T) {
	handler := fallback.Value("x").Wrap(policy.Invoke)
	func() {
		defer func() {
			if got := recover(); got != errCall {
				t.Errorf("recovered %v, want the call's own value", got)
			}
		}()
		handler(t.Context(), policy.CallFunc(func(context.Context) (any, error) { panic(errCall) }))
	}()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		handler(t.Context(), policy.CallFunc(func(context.Context) (any, error) { runtime.Goexit(); return nil, nil }))
		t.Error("the handler returned from Goexit")
	}()
	<-ended
}

func TestBadSettings(t *testing.T) {
	tests := []struct {
		name string
		make func()
		want string
	}{
		{"nil func", func() { fallback.Func[int](nil) }, `fallback: Func(nil): must not be nil`},
		{"nil option", func() { fallback.Value(1, nil) }, `fallback "fallback": Option(nil): must not be nil`},
		{
			"all faults at once", func() { fallback.Value(1, fallback.Name(""), fallback.If(nil)) },
			`fallback "": If(nil): must not be nil; Name(""): must not be empty`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, tt.want) {
					t.Errorf("panic %q, want %q", got, tt.want)
				}
			}()
			tt.make()
		})
	}
}

func TestDescribe(t *testing.T) {
	d := fallback.Value(1, fallback.Name("cache"), fallback.If(failingStatus)).Describe()
	if d.Kind != "fallback" || d.Name != "cache" || !d.Param("classifier").Bool() {
		t.Errorf("described as %+v", d)
	}
}

func TestKeepsTheRules(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return fallback.Value("x") })
	policytest.Run(t, func() policy.Policy { return fallback.Value("x", fallback.If(failingStatus)) })
}

func TestSuccessAllocatesNothing(t *testing.T) {
	handler := fallback.Value("x").Wrap(policy.Invoke)
	value := new(int)
	call := policy.CallFunc(func(context.Context) (any, error) { return value, nil })
	if n := testing.AllocsPerRun(1000, func() { handler(t.Context(), call) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
