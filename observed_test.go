package holdfast_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/retry"
)

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
