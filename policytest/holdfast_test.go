package policytest_test

import (
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

// Each policy's own tests run the suite on its settings; here they are together.
func TestRunPassesPipelines(t *testing.T) {
	tests := []struct {
		name string
		make func() policy.Policy
	}{
		{"all", func() policy.Policy {
			return holdfast.Compose(
				timeout.New(time.Second),
				bulkhead.New(10, bulkhead.MaxQueue(10)),
				ratelimit.New(ratelimit.Per(10, time.Second), 10, ratelimit.MaxWait(time.Second)),
				breaker.New("payments"),
				retry.New(),
				timeout.New(10*time.Second, timeout.Name("total")),
				fallback.Value("x"),
			)
		}},
		{"abandoning", func() policy.Policy {
			return holdfast.Compose(
				timeout.New(time.Second, timeout.Abandon()),
				bulkhead.New(10),
				breaker.New("payments", breaker.FailureRate(.5, breaker.Last(10)), breaker.SlowCalls(time.Second, .5, breaker.Last(20))),
				retry.New(retry.Attempts(5), retry.MaxElapsed(time.Minute)),
			)
		}},
		{"pipeline in a pipeline", func() policy.Policy {
			inner := holdfast.Compose(timeout.New(time.Second), breaker.New("payments"))
			return holdfast.Compose(inner, retry.New(), timeout.New(time.Minute, timeout.Name("total"), timeout.Abandon()))
		}},
		{"odd order", func() policy.Policy {
			return holdfast.Unchecked(
				retry.New(), breaker.New("payments"), bulkhead.New(3, bulkhead.MaxQueue(100), bulkhead.MaxWait(time.Second)),
				timeout.New(time.Minute, timeout.Abandon()), retry.New(retry.Constant(0)), fallback.Value("x"),
			)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { policytest.Run(t, tt.make) })
	}
}
