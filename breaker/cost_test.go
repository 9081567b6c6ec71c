package breaker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

func TestStorm(t *testing.T) {
	b := breaker.New("payments",
		breaker.FailureRate(.5, breaker.Within(time.Second)), breaker.SlowCalls(time.Second, .9, breaker.Last(50)),
		breaker.OpenFor(time.Microsecond), breaker.Trials(3, 5), breaker.TolerateTrialFailures(1), breaker.TrialTimeout(time.Second),
	)
	handler := b.Wrap(policy.Invoke)
	var running sync.WaitGroup
	for i := range 1000 {
		running.Go(func() {
			defer func() { recover() }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for j := range 20 {
				switch (i + j) % 7 {
				case 0:
					handler(ctx, policytest.Script(policytest.Fail(errDown)))
				case 1:
					b.Stats()
				case 2:
					b.Isolate()()
				case 3:
					handler(ctx, policy.CallFunc(func(context.Context) (any, error) { cancel(); return nil, ctx.Err() }))
				case 4:
					if i%3 == 0 {
						handler(ctx, policytest.Script(policytest.Panic(errDown)))
					}
				default:
					handler(t.Context(), policytest.Script(policytest.Return(1)))
				}
			}
		})
	}
	running.Wait()
	b.Reset()
	if _, err := handler(t.Context(), policytest.Script(policytest.Return(1))); err != nil {
		t.Errorf("after the storm: %v", err)
	}
}

func TestSuccessAllocatesNothing(t *testing.T) {
	for name, options := range map[string][]breaker.Option{
		"consecutive": nil,
		"last":        {breaker.FailureRate(.5, breaker.Last(10))},
		"within":      {breaker.FailureRate(.5, breaker.Within(time.Minute))},
		"slow":        {breaker.SlowCalls(time.Second, .5, breaker.Within(time.Minute))},
	} {
		handler := breaker.New("payments", options...).Wrap(policy.Invoke)
		value := new(int)
		call := policy.CallFunc(func(context.Context) (any, error) { return value, nil })
		if n := testing.AllocsPerRun(1000, func() { handler(t.Context(), call) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

func TestRefusalAllocatesOnce(t *testing.T) {
	c := newCircuit(breaker.ConsecutiveFailures(1))
	c.play(t, "F")
	call := policytest.Script(policytest.Return(1))
	if n := testing.AllocsPerRun(1000, func() { c.call(t.Context(), call) }); n > 1 {
		t.Errorf("%v allocations, want the error's", n)
	}
}

func TestKeepsTheRules(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return breaker.New("payments") })
	policytest.Run(t, func() policy.Policy {
		return breaker.New("payments", breaker.SlowCalls(time.Second, 1, breaker.Within(time.Minute)), breaker.Failures(50, breaker.Last(50)))
	})
}
