package policytest_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

func TestRunOnSoundPolicies(t *testing.T) {
	tests := []struct {
		name string
		make func() policy.Policy
	}{
		{"least", func() policy.Policy { return policy.Func(least) }},
		{"fallback", func() policy.Policy { return fallback.Value("x") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { policytest.Run(t, tt.make) })
	}
}

// least is the least that a policy must do.
func least(next policy.Handler) policy.Handler {
	return func(ctx context.Context, call policy.Call) (any, error) {
		if err := policy.ContextError(ctx); err != nil {
			return nil, err
		}
		return next(ctx, call)
	}
}
