package timeout_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/timeout"
)

var value = new(int)

// ignoring never looks at its ctx, looking selects on Done as a client does.
var (
	ignoring = policy.CallFunc(func(context.Context) (any, error) { return value, nil })
	looking  = policy.CallFunc(func(ctx context.Context) (any, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		default:
			return value, nil
		}
	})
)

// floor is what a user writes by hand.
func floor(ctx context.Context, call policy.Call) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return call.Invoke(ctx)
}

func BenchmarkCall(b *testing.B) {
	benchmarks := []struct {
		name    string
		handler policy.Handler
		call    policy.Call
	}{
		{"ignoring/context.WithTimeout", floor, ignoring},
		{"ignoring/timeout", timeout.New(time.Second).Wrap(policy.Invoke), ignoring},
		{"looking/context.WithTimeout", floor, looking},
		{"looking/timeout", timeout.New(time.Second).Wrap(policy.Invoke), looking},
		{"looking/abandon", timeout.New(time.Second, timeout.Abandon()).Wrap(policy.Invoke), looking},
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for _, bb := range benchmarks {
		b.Run("serial/"+bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bb.handler(ctx, bb.call)
			}
		})
	}
	for _, bb := range benchmarks {
		b.Run("parallel/"+bb.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					bb.handler(ctx, bb.call)
				}
			})
		})
	}
}
