package policytest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// broken are policies that break a rule each, and the checks that must fail of it:
// those, and no others. One with a question mark may fail, as chance has it.
var broken = []struct {
	name   string
	checks []string
	make   func() policy.Policy
}{
	{"nil", []string{"no goroutine of its own"}, func() policy.Policy { return nil }},
	{"nil handler", []string{"no goroutine of its own"}, func() policy.Policy {
		return policy.Func(func(policy.Handler) policy.Handler { return nil })
	}},
	{"janitor", []string{"no goroutine of its own"}, func() policy.Policy {
		go func() {
			for range time.Tick(time.Second) {
			}
		}()
		return policy.Func(least)
	}},
	{"a goroutine left by each call", []string{"no goroutine of its own"}, around(func(ctx context.Context, call policy.Call, next policy.Handler) (any, error) {
		go func() { select {} }()
		return next(ctx, call)
	})},
	{"goroutines of many kinds", []string{"no goroutine of its own"}, func() policy.Policy {
		never := make(chan int)
		for _, f := range []func(){
			func() { <-never }, func() { make(chan int) <- 1 }, func() { select {} }, func() { time.Sleep(time.Hour) },
			func() { <-make(chan string) }, func() { never <- <-make(chan int) },
		} {
			for range 2 {
				go f()
			}
		}
		go time.Sleep(time.Hour)
		return policy.Func(least)
	}},
	{"next passed by", []string{"success passes"}, func() policy.Policy {
		return policy.Func(func(policy.Handler) policy.Handler { return least(policy.Invoke) })
	}},
	{"next called by Wrap", []string{"success passes"}, func() policy.Policy {
		return policy.Func(func(next policy.Handler) policy.Handler {
			next(context.Background(), policy.CallFunc(func(context.Context) (any, error) { return nil, nil }))
			return least(next)
		})
	}},
	{"value replaced", []string{"success passes"}, around(func(ctx context.Context, call policy.Call, next policy.Handler) (any, error) {
		value, err := next(ctx, call)
		return fmt.Sprint(value), err
	})},
	{"success repeated", []string{"success passes"}, around(func(ctx context.Context, call policy.Call, next policy.Handler) (any, error) {
		value, err := next(ctx, call)
		if err == nil {
			policy.Discard(call, value)
			return next(ctx, call)
		}
		return value, err
	})},
	{"lock across the call", []string{"no lock across the call"}, func() policy.Policy {
		var mu sync.Mutex
		return policy.Func(func(next policy.Handler) policy.Handler {
			return func(ctx context.Context, call policy.Call) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				return next(ctx, call)
			}
		})
	}},
	{"error hidden", []string{"error stays reachable", "refusal is final", "cancel ends every wait", "deadline ends every wait"}, around(
		func(ctx context.Context, call policy.Call, next policy.Handler) (any, error) {
			value, err := next(ctx, call)
			if err != nil {
				err = errors.New("something went wrong")
			}
			return value, err
		},
	)},
	{"refusals retried", []string{"refusal is final"}, retrier{
		again: func(_ policy.Call, _ any, err error) bool { return policy.Rejected(err) },
	}.policy},
	{"Judge not asked", []string{"refusal is final"}, retrier{
		again: func(_ policy.Call, _ any, err error) bool { return err != nil && !policy.Rejected(err) },
	}.policy},
	{"retried after the caller left", []string{"context is passed on", "cancel ends every wait", "deadline ends every wait"}, retrier{
		sleep: func(context.Context, policy.Clock, time.Duration) error { return nil },
	}.policy},
	{"a wait without an eye on ctx", []string{"cancel ends every wait", "deadline ends every wait"}, retrier{
		sleep: func(ctx context.Context, _ policy.Clock, d time.Duration) error { time.Sleep(d); return ctx.Err() },
	}.policy},
	{"a queue without an eye on ctx", []string{"cancel ends every wait", "deadline ends every wait"}, semaphore(
		func(_ context.Context, slots chan struct{}) error { slots <- struct{}{}; return nil },
		func(_ context.Context, free, next func()) { defer free(); next() },
	)},
	{"a plain sleep", []string{"cancel ends every wait"}, around(func(ctx context.Context, call policy.Call, next policy.Handler) (any, error) {
		time.Sleep(50 * time.Millisecond)
		if err := policy.ContextError(ctx); err != nil {
			return nil, err
		}
		return next(ctx, call)
	})},
	{"a place that is lost, and waited for", []string{"cancel ends every wait", "deadline ends every wait", "panic passes", "Goexit passes", "storm"}, semaphore(
		func(_ context.Context, slots chan struct{}) error { slots <- struct{}{}; return nil },
		func(ctx context.Context, free, next func()) {
			next()
			if ctx.Err() == nil {
				free()
			}
		},
	)},
	{"call wrapped", []string{"call is passed on"}, around(func(ctx context.Context, call policy.Call, next policy.Handler) (any, error) {
		return next(ctx, policy.CallFunc(call.Invoke))
	})},
	{"context replaced", []string{"context is passed on", "cancel ends every wait", "deadline ends every wait", "kept value stays alive", "storm?"}, around(
		func(_ context.Context, call policy.Call, next policy.Handler) (any, error) {
			return next(context.Background(), call)
		},
	)},
	{"done ctx not looked at", []string{"done context"}, func() policy.Policy {
		return policy.Func(func(next policy.Handler) policy.Handler { return next })
	}},
	{"cause lost", []string{"done context"}, func() policy.Policy {
		return policy.Func(func(next policy.Handler) policy.Handler {
			return func(ctx context.Context, call policy.Call) (any, error) {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				return next(ctx, call)
			}
		})
	}},
	{"token taken for a done ctx", []string{"done context"}, func() policy.Policy {
		var taken atomic.Int64
		return policy.Func(func(next policy.Handler) policy.Handler {
			return func(ctx context.Context, call policy.Call) (any, error) {
				if taken.Add(1) == 100 {
					time.AfterFunc(time.Hour, func() { taken.Store(0) })
				}
				if err := policy.ContextError(ctx); err != nil {
					return nil, err
				}
				if taken.Load() > 100 {
					return nil, policy.ErrRejected
				}
				return next(ctx, call)
			}
		})
	}},
	{"panic swallowed", []string{"panic passes"}, around(func(ctx context.Context, call policy.Call, next policy.Handler) (value any, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		return next(ctx, call)
	})},
	{"panic wrapped", []string{"panic passes"}, around(func(ctx context.Context, call policy.Call, next policy.Handler) (any, error) {
		defer func() {
			if r := recover(); r != nil {
				panic(fmt.Errorf("panic: %v", r))
			}
		}()
		return next(ctx, call)
	})},
	{"permit lost by panic and Goexit", []string{"panic passes", "Goexit passes", "storm?"}, semaphore(take,
		func(_ context.Context, free, next func()) { next(); free() },
	)},
	{"permit lost by Goexit", []string{"Goexit passes", "storm?"}, semaphore(take,
		func(_ context.Context, free, next func()) {
			defer func() {
				if r := recover(); r != nil {
					free()
					panic(r)
				}
			}()
			next()
			free()
		},
	)},
	{"permit lost by a caller that leaves", []string{"cancel ends every wait", "deadline ends every wait", "storm?"}, semaphore(take,
		func(ctx context.Context, free, next func()) {
			defer func() {
				if ctx.Err() == nil {
					free()
				}
			}()
			next()
		},
	)},
	{"trial lost by panic and Goexit", []string{"panic passes", "Goexit passes", "storm?"}, func() policy.Policy { return &circuit{} }},
	{"Goexit becomes a return", []string{"Goexit passes"}, around(func(ctx context.Context, call policy.Call, next policy.Handler) (value any, err error) {
		var panicked any
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { panicked = recover() }()
			value, err = next(ctx, call)
		}()
		<-done
		if panicked != nil {
			panic(panicked)
		}
		return value, err
	})},
	{"value lost between attempts", []string{"value is returned or discarded", "storm?"}, retrier{
		discard: func(policy.Call, any) {},
	}.policy},
	{"value lost where nobody judges", []string{"value is returned or discarded", "storm"}, around(
		func(ctx context.Context, call policy.Call, next policy.Handler) (any, error) {
			value, err := next(ctx, call)
			if _, judges := call.(policy.Judge); err != nil && !judges {
				value = nil
			}
			return value, err
		},
	)},
	{"value lost by an observer's panic", []string{"value is returned or discarded"}, func() policy.Policy { return &teller{lossy: true} }},
	{"value discarded and returned", []string{"value is returned or discarded", "storm?"}, around(
		func(ctx context.Context, call policy.Call, next policy.Handler) (any, error) {
			value, err := next(ctx, call)
			policy.Discard(call, value)
			return value, err
		},
	)},
	{"ctx of a kept value cancelled", []string{"kept value stays alive"}, around(func(ctx context.Context, call policy.Call, next policy.Handler) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return next(ctx, call)
	})},
	{"kept but timed", []string{"kept value stays alive"}, around(func(ctx context.Context, call policy.Call, next policy.Handler) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		value, err := next(ctx, call)
		if k, ok := call.(policy.Keeper); !ok || !k.Keep(value, cancel) {
			cancel()
		}
		return value, err
	})},
	{"one next for all", []string{"two pipelines"}, func() policy.Policy {
		var first policy.Handler
		return policy.Func(func(next policy.Handler) policy.Handler {
			if first == nil {
				first = next
			}
			return least(first)
		})
	}},
	{"description without a kind", []string{"description"}, func() policy.Policy { return described{policy.Func(least)} }},
	{"events hidden by a panic", []string{"observers"}, func() policy.Policy { return &teller{rude: true} }},
	{"cancel without effect", []string{"observers"}, func() policy.Policy { return &teller{deaf: true} }},
	{"observer's panic wins", []string{"observers"}, func() policy.Policy { return &teller{loud: true} }},
}
