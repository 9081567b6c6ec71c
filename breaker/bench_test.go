package breaker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policy"
)

func BenchmarkClosed(b *testing.B) {
	for _, bb := range []struct {
		name    string
		options []breaker.Option
	}{
		{"consecutive", nil},
		{"last", []breaker.Option{breaker.FailureRate(.5, breaker.Last(100))}},
		{"within", []breaker.Option{breaker.FailureRate(.5, breaker.Within(time.Minute))}},
		{"slow", []breaker.Option{breaker.SlowCalls(time.Second, .5, breaker.Within(time.Minute))}},
	} {
		handler := breaker.New("payments", bb.options...).Wrap(policy.Invoke)
		value := new(int)
		call := policy.CallFunc(func(context.Context) (any, error) { return value, nil })
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				handler(context.Background(), call)
			}
		})
		b.Run(bb.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					handler(context.Background(), call)
				}
			})
		})
	}
}

func BenchmarkRefused(b *testing.B) {
	handler := breaker.New("payments", breaker.ConsecutiveFailures(1), breaker.OpenFor(time.Hour)).Wrap(policy.Invoke)
	call := policy.CallFunc(func(context.Context) (any, error) { return nil, errors.New("down") })
	handler(context.Background(), call)
	b.ReportAllocs()
	for b.Loop() {
		handler(context.Background(), call)
	}
}
