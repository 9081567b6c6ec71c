package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"
)

// BEHAVIOUR 44, and nested: attempts multiply, each call sees the nearest retry's.
func TestAttemptFrom(t *testing.T) {
	var got [][2]int
	outer, inner := retry.New(retry.Constant(0)), retry.New(retry.Constant(0))
	middle := func(ctx context.Context, call policy.Call) (any, error) {
		number := retry.AttemptFrom(ctx)
		return inner.Wrap(func(ctx context.Context, call policy.Call) (any, error) {
			got = append(got, [2]int{number, retry.AttemptFrom(ctx)})
			return policy.Invoke(ctx, call)
		})(ctx, call)
	}
	if n := retry.AttemptFrom(t.Context()); n != 1 {
		t.Errorf("attempt %d without a retry, want 1", n)
	}
	_, err := outer.Wrap(middle)(t.Context(), returning(nil, errCall))
	want := [][2]int{{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {2, 3}, {3, 1}, {3, 2}, {3, 3}}
	if !slices.Equal(got, want) {
		t.Errorf("attempts %v, want %v", got, want)
	}
	verdicts := 0
	for e, ok := errors.AsType[*retry.ExhaustedError](err); ok; e, ok = errors.AsType[*retry.ExhaustedError](e.Last) {
		verdicts++
	}
	if verdicts != 2 || !errors.Is(err, errCall) {
		t.Errorf("error %v, want the outer's verdict on the inner's on the call's", err)
	}
}

// The call may keep its ctx: no later attempt changes it, and it passes on what the
// caller's has.
func TestContextIsTheAttemptsOwn(t *testing.T) {
	type key struct{}
	parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
	var kept []context.Context
	retry.New(retry.Constant(0)).Wrap(policy.Invoke)(parent, policy.CallFunc(func(ctx context.Context) (any, error) {
		kept = append(kept, ctx)
		return nil, errCall
	}))
	for i, ctx := range kept {
		if n := retry.AttemptFrom(ctx); n != i+1 || ctx.Value(key{}) != "v" || ctx.Err() != nil {
			t.Errorf("attempt %d kept number %d, value %v, error %v", i+1, n, ctx.Value(key{}), ctx.Err())
		}
	}
	cancel()
	for _, ctx := range kept {
		if ctx.Err() == nil {
			t.Error("a kept ctx outlives the caller's")
		}
	}
}
