package cases

import (
	"context"

	"github.com/failsafe-go/failsafe-go"
	failsafebreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/felixgeelhaar/fortify/middleware"
	"github.com/holdfast-go/holdfast"
)

func closure() Case {
	return Case{
		Key:   "closure",
		Title: "Retry and breaker around a capturing closure",
		About: "A closure that captures is an allocation of the caller's wherever it escapes; it does so under every library.",
		Implementations: []Implementation{
			ours("holdfast", "", func(*Setup) Loop { return closureLoop(newGuard()) }),
			peer("fortify", "", func(*Setup) Loop { return fortifyClosure(fortifyGuard[*Result]()) }),
			peer("failsafe-go, Get", "", func(*Setup) Loop {
				return failsafeClosure(failsafe.With[*Result](newFailsafeGuardRetry[*Result](), newFailsafeBreaker()))
			}),
		},
	}
}

func structResult() Case {
	return Case{
		Key:   "struct",
		Title: "Retry and breaker, with a struct as result",
		About: "A value of three words. Ours travels as an `any` and is boxed; that of a generic peer is not.",
		Implementations: []Implementation{
			ours("holdfast", "", func(*Setup) Loop { return structLoop(newGuard()) }),
			peer("fortify", "", func(*Setup) Loop { return fortifyStruct(fortifyGuard[Value]()) }),
			peer("failsafe-go, Get", "", func(*Setup) Loop {
				return failsafeStruct(failsafe.With[Value](newFailsafeGuardRetry[Value](), newFailsafeValueBreaker()))
			}),
		},
	}
}

// fetch is what the closures call with what they captured.
func fetch(ctx context.Context, id int, fn func(context.Context) (*Result, error)) (*Result, error) {
	if id < 0 {
		return nil, ErrWork
	}
	return fn(ctx)
}

func closureLoop(p *holdfast.Pipeline) Loop {
	return func(n int, w Work) (v *Result, err error) {
		ctx, fn := w.Context, w.Do
		for id := range n {
			v, err = holdfast.Do(ctx, p, func(ctx context.Context) (*Result, error) { return fetch(ctx, id, fn) })
		}
		return v, err
	}
}

func fortifyClosure(chain *middleware.Chain[*Result]) Loop {
	return func(n int, w Work) (v *Result, err error) {
		ctx, fn := w.Context, w.Do
		for id := range n {
			v, err = chain.Execute(ctx, func(ctx context.Context) (*Result, error) { return fetch(ctx, id, fn) })
		}
		return v, err
	}
}

func failsafeClosure(executor failsafe.Executor[*Result]) Loop {
	return func(n int, w Work) (v *Result, err error) {
		ctx, fn := w.Context, w.Do
		for id := range n {
			v, err = executor.Get(func() (*Result, error) { return fetch(ctx, id, fn) })
		}
		return v, err
	}
}

// asResult is for the last of a loop's values.
func asResult(v Value, err error) (*Result, error) {
	if v == (Value{}) {
		return nil, err
	}
	return &Result{ID: v.ID}, err
}

func structLoop(p *holdfast.Pipeline) Loop {
	return func(n int, w Work) (*Result, error) {
		var v Value
		var err error
		for range n {
			v, err = holdfast.Do(w.Context, p, w.Value)
		}
		return asResult(v, err)
	}
}

func fortifyStruct(chain *middleware.Chain[Value]) Loop {
	return func(n int, w Work) (*Result, error) {
		var v Value
		var err error
		for range n {
			v, err = chain.Execute(w.Context, w.Value)
		}
		return asResult(v, err)
	}
}

func failsafeStruct(executor failsafe.Executor[Value]) Loop {
	return func(n int, w Work) (*Result, error) {
		fn := func() (Value, error) { return w.Value(w.Context) }
		var v Value
		var err error
		for range n {
			v, err = executor.Get(fn)
		}
		return asResult(v, err)
	}
}

func newFailsafeValueBreaker() failsafebreaker.CircuitBreaker[Value] {
	return failsafebreaker.NewBuilder[Value]().WithFailureThreshold(failuresInARow).WithDelay(openFor).Build()
}
