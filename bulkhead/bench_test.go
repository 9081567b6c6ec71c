package bulkhead_test

import (
	"context"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/policy"
)

// BenchmarkSemaphore is what BenchmarkFree is to be compared with: a free slot may
// cost a quarter more.
func BenchmarkSemaphore(b *testing.B) {
	slots := semaphore.NewWeighted(20)
	next := policy.Handler(policy.Invoke)
	run(b, func(ctx context.Context, call policy.Call) (any, error) {
		slots.TryAcquire(1)
		value, err := next(ctx, call)
		slots.Release(1)
		return value, err
	})
}

func BenchmarkFree(b *testing.B) { run(b, bulkhead.New(20).Wrap(policy.Invoke)) }

func BenchmarkRefused(b *testing.B) {
	bulk := bulkhead.New(1)
	if _, err := bulk.Acquire(context.Background()); err != nil {
		b.Fatal(err)
	}
	run(b, bulk.Wrap(policy.Invoke))
}

func BenchmarkStats(b *testing.B) {
	bulk := bulkhead.New(20)
	for b.Loop() {
		bulk.Stats()
	}
}

func run(b *testing.B, handler policy.Handler) {
	value, ctx := new(int), context.Background()
	call := policy.CallFunc(func(context.Context) (any, error) { return value, nil })
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			handler(ctx, call)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				handler(ctx, call)
			}
		})
	})
}
