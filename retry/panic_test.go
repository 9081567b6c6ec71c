package retry_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/retry"
)

// BEHAVIOUR 45, and the same for every callback: a panic or a Goexit passes, is not
// retried, and leaves no value behind.
func TestPanicAtEveryStep(t *testing.T) {
	tests := []struct {
		step  string
		calls int
	}{
		{"attempt 1", 1},
		{"attempt 2", 2},
		{"If", 1},
		{string(policy.AttemptDone), 1},
		{string(policy.RetryScheduled), 1},
		{"Backoff", 1},
		{"NextBackOff", 1},
		{"OnRetry", 1},
		{"Discard", 1},
		{string(policy.RetryExhausted), 3},
	}
	ways := []struct {
		name  string
		leave func()
		want  any
	}{
		{"panic", func() { panic(errCall) }, errCall},
		{"Goexit", runtime.Goexit, nil},
	}
	for _, tt := range tests {
		for _, way := range ways {
			for _, observed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, observed %t", tt.step, way.name, observed), func(t *testing.T) {
					left := false
					at := func(step string) {
						if step == tt.step && !left {
							left = true
							way.leave()
						}
					}
					r := retry.New(
						retry.If(func(any, error) policy.Outcome { at("If"); return policy.Failure }),
						retry.Backoff(func() backoff.BackOff { at("Backoff"); return stepBackoff(at) }),
						retry.OnRetry(func(context.Context, retry.Attempt) { at("OnRetry") }),
					)
					recorder := &policytest.Recorder{}
					if observed {
						r.Subscribe(policy.ObserverFunc(func(_ context.Context, e policy.Event) { at(string(e.Kind)) }))
						r.Subscribe(recorder)
					}
					call := &stepping{at: at}
					var value, recovered any
					returned := false
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						defer func() { recovered = recover() }()
						value, _ = r.Wrap(policy.Invoke)(t.Context(), call)
						returned = true
					}()
					<-ended

					if returned != !left || recovered != way.want && left {
						t.Fatalf("returned %t, recovered %v, want %v", returned, recovered, way.want)
					}
					if left && call.calls != tt.calls {
						t.Errorf("%d calls, want %d", call.calls, tt.calls)
					}
					if tt.step == fmt.Sprint("attempt ", call.calls) {
						call.calls-- // this one returned no value
					}
					call.account(t, value)
					done := 0
					for _, kind := range recorder.Kinds() {
						if kind == policy.AttemptDone {
							done++
						}
					}
					if observed && done != tt.calls {
						t.Errorf("events %v, want %d attempt.done", recorder.Kinds(), tt.calls)
					}
				})
			}
		}
	}
}

type stepBackoff func(step string)

func (stepBackoff) Reset() {}

func (b stepBackoff) NextBackOff() time.Duration {
	b("NextBackOff")
	return 0
}

// Where the call and an observer both panic, the call's panic wins, and the event
// says what an event of a panic can say.
func TestCallsPanicWins(t *testing.T) {
	r := retry.New()
	recorder := policytest.Record(r)
	r.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) { panic("the observer's") }))
	defer func() {
		if got := recover(); got != errCall {
			t.Errorf("recovered %v, want the call's", got)
		}
		events := recorder.Events()
		if len(events) != 1 || events[0].Outcome != policy.Failure || events[0].Attempt != 1 || events[0].Err != nil {
			t.Errorf("events %+v, want one attempt.done", events)
		}
	}()
	r.Wrap(policy.Invoke)(t.Context(), policytest.Script(policytest.Panic(errCall)))
}

func TestNilBackoff(t *testing.T) {
	r := retry.New(retry.Name("x"), retry.Backoff(func() backoff.BackOff { return nil }))
	call := keeper(answer{1, errCall})
	defer func() {
		const want = `retry "x": Backoff: the func returned nil: must make a strategy`
		if got := recover(); got != want {
			t.Errorf("recovered %v, want %s", got, want)
		}
		if !slices.Equal(call.discarded, []any{1}) {
			t.Errorf("discarded %v, want the value", call.discarded)
		}
	}()
	r.Wrap(policy.Invoke)(t.Context(), call)
}
