package retry_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"
)

func BenchmarkBare(b *testing.B) {
	benchmark(b, policy.Invoke, policy.CallFunc(func(context.Context) (any, error) { return nil, nil }))
}

func BenchmarkFirstSucceeds(b *testing.B) {
	value := new(int)
	benchmark(b, retry.New().Wrap(policy.Invoke), policy.CallFunc(func(context.Context) (any, error) { return value, nil }))
}

func BenchmarkFirstSucceedsParallel(b *testing.B) {
	handler := retry.New().Wrap(policy.Invoke)
	value := new(int)
	call := policy.CallFunc(func(context.Context) (any, error) { return value, nil })
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			handler(b.Context(), call)
		}
	})
}

func BenchmarkThreeFail(b *testing.B) {
	benchmark(b, retry.New(retry.Constant(0)).Wrap(policy.Invoke), policy.CallFunc(func(context.Context) (any, error) { return nil, errCall }))
}

func BenchmarkPermanent(b *testing.B) {
	err := retry.Permanent(errCall)
	benchmark(b, retry.New().Wrap(policy.Invoke), policy.CallFunc(func(context.Context) (any, error) { return nil, err }))
}

func benchmark(b *testing.B, handler policy.Handler, call policy.Call) {
	b.Helper()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		handler(ctx, call)
	}
}
