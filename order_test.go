package holdfast_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/ratelimit"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

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
