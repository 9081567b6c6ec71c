package policytest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

var errDown = errors.New("connection refused")

func ExampleClock() {
	clock := policytest.NewClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	payments := breaker.New("payments", breaker.ConsecutiveFailures(1), breaker.OpenFor(30*time.Second), breaker.Clock(clock))
	holdfast.Run(context.Background(), holdfast.Compose(payments), func(context.Context) error { return errDown })

	clock.Advance(30*time.Second - 1)
	fmt.Println(payments.State(), payments.Stats().RetryIn)
	clock.Set(clock.Now().Add(-time.Hour)) // an operator sets the wall clock back
	clock.Advance(1)
	fmt.Println(payments.State())
	// Output:
	// open 1ns
	// half-open
}

func ExampleScript() {
	call := policytest.Script(
		policytest.Fail(errDown),
		policytest.Fail(errDown),
		policytest.Return("paid"), // and so for ever
	)
	pipeline := holdfast.Compose(retry.New(retry.Constant(0)))
	answer, err := holdfast.Do(context.Background(), pipeline, call.Invoke)
	fmt.Println(answer, err, "after", call.Calls(), "calls")
	// Output: paid <nil> after 3 calls
}

// A call that takes its time on a clock, all on one goroutine.
func ExampleScripted_On() {
	clock := policytest.NewClock(time.Time{})
	search := breaker.New("search", breaker.SlowCalls(2*time.Second, 1, breaker.Last(1)), breaker.MinimumCalls(1), breaker.Clock(clock))
	call := policytest.Script(policytest.Return("found").After(3 * time.Second)).On(clock)
	answer, err := holdfast.Do(context.Background(), holdfast.Compose(search), call.Invoke)
	fmt.Println(answer, err, "in", clock.Elapsed())
	fmt.Println(search.State())
	// Output:
	// found <nil> in 3s
	// open
}

func ExampleRecord() {
	pipeline := holdfast.Compose(breaker.New("payments"), retry.New(retry.Constant(0)))
	recorder := policytest.Record(pipeline)
	call := policytest.Script(policytest.Fail(errDown), policytest.Return("paid"))
	holdfast.Do(context.Background(), pipeline, call.Invoke)
	fmt.Println(recorder.Kinds())
	// Output: [attempt.done retry.scheduled attempt.done call.done]
}

// What waits is tested in a bubble: its time is that of the system's clock there,
// and passes when every goroutine waits.
func TestGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipeline := holdfast.Compose(
			timeout.New(time.Second),
			retry.New(retry.Attempts(3), retry.Constant(2*time.Second)),
		)
		call, start := policytest.Script(policytest.Block()), time.Now()
		_, err := holdfast.Do(t.Context(), pipeline, call.Invoke)
		if !errors.Is(err, timeout.ErrExceeded) || call.Calls() != 3 || time.Since(start) != 7*time.Second {
			t.Errorf("%v, after %d calls and %v", err, call.Calls(), time.Since(start))
		}
	})
}

// And so is what has to happen at the same time.
func TestTwentyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payments := bulkhead.New(20)
		pipeline := holdfast.Compose(payments)
		ctx, cancel := context.WithCancel(t.Context())
		for range 25 {
			go holdfast.Do(ctx, pipeline, policytest.Script(policytest.Block()).Invoke)
		}
		synctest.Wait() // until all of them run, or have been refused
		if s := payments.Stats(); s.InFlight != 20 || s.Rejected != 5 {
			t.Errorf("%d run and %d were refused", s.InFlight, s.Rejected)
		}
		cancel()
		synctest.Wait()
		if s := payments.Stats(); s.InFlight != 0 {
			t.Errorf("%d slots are lost", s.InFlight)
		}
	})
}

// A fallback of the wrong type shows only in calls of the type that it has to answer for.
func TestFallbackIsOfTheRightType(t *testing.T) {
	pipeline := holdfast.Compose(fallback.Value("unknown"))
	call := policytest.Script(policytest.Fail(errDown))
	name, err := holdfast.Do(t.Context(), pipeline, func(ctx context.Context) (string, error) {
		value, err := call.Invoke(ctx)
		text, _ := value.(string) // "" beside an error
		return text, err
	})
	if name != "unknown" || err != nil {
		t.Errorf("got %q, %v", name, err)
	}
}

// With the script's own Invoke, a call returns any, and every type will do.
func TestAnyFallbackIsOfTheTypeAny(t *testing.T) {
	pipeline := holdfast.Compose(fallback.Value(0))
	if _, err := holdfast.Do(t.Context(), pipeline, policytest.Script(policytest.Fail(errDown)).Invoke); err != nil {
		t.Errorf("%v, although any value is an any", err)
	}
	_, err := holdfast.Do(t.Context(), pipeline, func(context.Context) (string, error) { return "", errDown })
	if _, ok := errors.AsType[*holdfast.ResultTypeError](err); !ok {
		t.Errorf("%v, want a ResultTypeError", err)
	}
}

// To a bubble, what was before is in the future.
func TestMadeOutsideOfTheBubble(t *testing.T) {
	payments := breaker.New("payments", breaker.ConsecutiveFailures(1), breaker.OpenFor(time.Second))
	pipeline := holdfast.Compose(payments)
	holdfast.Do(t.Context(), pipeline, policytest.Script(policytest.Fail(errDown)).Invoke)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10 * 365 * 24 * time.Hour)
		if payments.State() != breaker.Open {
			t.Errorf("%v, want it open for decades", payments.State())
		}
	})
}

// Orders × outcomes: three requests in a row through each.
func TestOrders(t *testing.T) {
	limit := func() policy.Policy { return timeout.New(time.Second) }
	circuit := func() policy.Policy { return breaker.New("payments") } // opens at five failures in a row
	again := func() policy.Policy { return retry.New(retry.Attempts(3), retry.Constant(time.Second)) }
	orders := map[string]func() *holdfast.Pipeline{
		"retry → breaker → timeout": func() *holdfast.Pipeline { return holdfast.Compose(limit(), circuit(), again()) },
		"breaker → retry → timeout": func() *holdfast.Pipeline { return holdfast.Unchecked(limit(), again(), circuit()) },
		"timeout → retry → breaker": func() *holdfast.Pipeline { return holdfast.Unchecked(circuit(), again(), limit()) },
	}
	outcomes := map[string][]policytest.Step{
		"blip":   {policytest.Fail(errDown), policytest.Return("paid")},
		"outage": {policytest.Fail(errDown)},
		"hang":   {policytest.Block()},
	}
	tests := []struct {
		order, outcome string
		paid, calls    int // requests that succeed, and calls that payments gets
		took           time.Duration
	}{
		{"retry → breaker → timeout", "blip", 3, 4, time.Second},
		{"retry → breaker → timeout", "outage", 0, 5, 4 * time.Second}, // the circuit opens in the second request
		{"retry → breaker → timeout", "hang", 0, 5, 9 * time.Second},
		{"breaker → retry → timeout", "blip", 3, 4, time.Second},
		{"breaker → retry → timeout", "outage", 0, 9, 6 * time.Second}, // three failures count, nine calls are made
		{"breaker → retry → timeout", "hang", 0, 9, 15 * time.Second},
		{"timeout → retry → breaker", "blip", 2, 3, 0}, // no time for a second attempt
		{"timeout → retry → breaker", "outage", 0, 3, 0},
		{"timeout → retry → breaker", "hang", 0, 3, 3 * time.Second}, // and hung calls are never counted
	}
	for _, tt := range tests {
		t.Run(tt.order+": "+tt.outcome, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pipeline, payments := orders[tt.order](), policytest.Script(outcomes[tt.outcome]...)
				paid, start := 0, time.Now()
				for range 3 {
					if _, err := holdfast.Do(t.Context(), pipeline, payments.Invoke); err == nil {
						paid++
					}
				}
				if took := time.Since(start); paid != tt.paid || payments.Calls() != tt.calls || took != tt.took {
					t.Errorf("%d paid, %d calls, %v; want %d, %d, %v", paid, payments.Calls(), took, tt.paid, tt.calls, tt.took)
				}
			})
		})
	}
}

// What was told is part of a composition too.
func TestTellsThatTheCircuitOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipeline := holdfast.Compose(breaker.New("payments", breaker.ConsecutiveFailures(2)), retry.New())
		recorder := policytest.Record(pipeline)
		holdfast.Do(t.Context(), pipeline, policytest.Script(policytest.Fail(errDown)).Invoke)
		at := slices.IndexFunc(recorder.Events(), func(e policy.Event) bool {
			return e.Kind == policy.CircuitChanged && e.Name == "payments" && e.To == "open"
		})
		if at < 0 {
			t.Errorf("nobody was told that the circuit opens, but %v", recorder.Kinds())
		}
	})
}
