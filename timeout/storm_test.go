package timeout_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/timeout"
)

// BEHAVIOUR 52: a long-lived caller holds nothing of calls that have returned.
func TestParentHoldsNothing(t *testing.T) {
	parent := &counting{Context: t.Context(), done: make(chan struct{})}
	bound := timeout.New(time.Hour).Wrap(policy.Invoke)
	abandon := timeout.New(time.Hour, timeout.Abandon()).Wrap(policy.Invoke)
	asking := &owner{value: value, invoke: func(ctx context.Context) {
		ctx.Done()
		if parent.children.Load() == 0 {
			t.Error("nothing hangs on the caller's ctx while the call runs")
		}
	}}
	calls := []policy.Call{ignoring, looking, ignoring, looking, asking}
	for i := range 100_000 {
		handler := bound
		if i%20 >= 15 { // a goroutine for each
			handler = abandon
		}
		if _, err := handler(parent, calls[i%len(calls)]); err != nil {
			t.Fatal(err)
		}
	}
	if n := parent.children.Load(); n != 0 {
		t.Errorf("the caller's ctx holds %d contexts", n)
	}
}

// counting is a context that knows how many others hang on it: package context uses its
// AfterFunc.
type counting struct {
	context.Context
	done     chan struct{}
	children atomic.Int64
}

func (c *counting) Done() <-chan struct{} { return c.done }

func (c *counting) Value(any) any { return nil }

func (c *counting) AfterFunc(func()) func() bool {
	c.children.Add(1)
	var once sync.Once
	return func() (stopped bool) {
		once.Do(func() {
			c.children.Add(-1)
			stopped = true
		})
		return stopped
	}
}

// A thousand goroutines ask at once, around the instants of the limit, the caller's
// cancellation and the return: all hear the same.
func TestRaces(t *testing.T) {
	for _, end := range []string{"limit", "caller", "return"} {
		for round := range 5 {
			var ctx context.Context
			var askers sync.WaitGroup
			ends := make(chan error, 2000)
			parent, cancel := context.WithCancel(t.Context())
			limit := time.Hour
			if end == "limit" {
				limit = time.Duration(1 + round*20_000)
			}
			within(parent, timeout.New(limit), func(c context.Context) {
				ctx = c
				for i := range 1000 {
					askers.Go(func() {
						if i%2 == 0 {
							ctx.Deadline()
							<-ctx.Done()
							ends <- ctx.Err()
							return
						}
						for ctx.Err() == nil {
							runtime.Gosched()
						}
						ends <- ctx.Err()
						<-ctx.Done()
						ends <- ctx.Err()
					})
				}
				switch end {
				case "limit":
					<-ctx.Done()
				case "caller":
					cancel()
				}
			})
			askers.Wait()
			cancel()
			close(ends)
			for err := range ends {
				if err != ctx.Err() {
					t.Fatalf("one heard %v, another %v", err, ctx.Err())
				}
			}
			var exceeded *timeout.ExceededError
			if errors.As(context.Cause(ctx), &exceeded) != (ctx.Err() == context.DeadlineExceeded) {
				t.Fatalf("Err %v, Cause %v", ctx.Err(), context.Cause(ctx))
			}
		}
	}
}
