package fallback_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/policy"
)

func BenchmarkUnused(b *testing.B) {
	handler := fallback.Value("x").Wrap(policy.Invoke)
	value, ctx := new(int), context.Background()
	call := policy.CallFunc(func(context.Context) (any, error) { return value, nil })
	b.ReportAllocs()
	for b.Loop() {
		handler(ctx, call)
	}
}

func BenchmarkUsed(b *testing.B) {
	handler := fallback.Value("x").Wrap(policy.Invoke)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		handler(ctx, returning(nil, errCall))
	}
}
