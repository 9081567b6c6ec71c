package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/ratelimit"
)

// plenty is a rate that no benchmark exceeds.
func plenty() *ratelimit.Limiter { return ratelimit.New(ratelimit.Per(1e9, time.Second), 1e9) }

// scarce has no token left.
func scarce() *ratelimit.Limiter {
	l := ratelimit.New(ratelimit.Per(1, 24*time.Hour), 1)
	l.Allow()
	return l
}

func BenchmarkAllow(b *testing.B) {
	for name, l := range map[string]*ratelimit.Limiter{"taken": plenty(), "refused": scarce()} {
		b.Run(name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Allow()
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					l.Allow()
				}
			})
		})
	}
}

func BenchmarkCall(b *testing.B) {
	value, ctx := new(int), context.Background()
	call := policy.CallFunc(func(context.Context) (any, error) { return value, nil })
	for name, l := range map[string]*ratelimit.Limiter{"taken": plenty(), "refused": scarce()} {
		handler := l.Wrap(policy.Invoke)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				handler(ctx, call)
			}
		})
	}
}
