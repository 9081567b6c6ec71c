package cases

import (
	"context"
	"time"

	avast "github.com/avast/retry-go/v5"
	backoff4 "github.com/cenkalti/backoff/v4"
	backoff5 "github.com/cenkalti/backoff/v5"
	"github.com/eapache/go-resiliency/retrier"
	failsaferetry "github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/retry"
	sethvargo "github.com/sethvargo/go-retry"
)

func retrySuccess() Case {
	return Case{
		Key:   "retry-success",
		Title: "Retry, the first attempt succeeds",
		About: "Three attempts, waits of 100 ms, doubled up to 10 s, without jitter. Strategies that keep state are made per call, as their documentation asks for.",
		Implementations: []Implementation{
			ours("holdfast", "", func(*Setup) Loop { return do(holdfast.Compose(newRetry())) }),
			bareCall(),
			peer("fortify", "", func(*Setup) Loop { return fortifyLoop(newFortifyRetry[*Result]()) }),
			peer("avast/retry-go", "its ctx belongs to the retrier, not to the call", func(*Setup) Loop {
				return avastLoop(avast.NewWithData[*Result](avast.Attempts(attempts), avast.Delay(firstDelay),
					avast.MaxDelay(maxDelay), avast.DelayType(avast.BackOffDelay), avast.LastErrorOnly(true)))
			}),
			peer("go-retry", "", func(*Setup) Loop {
				return sethvargoLoop(func() sethvargo.Backoff {
					return sethvargo.WithCappedDuration(maxDelay, sethvargo.NewExponential(firstDelay))
				})
			}),
			peer("backoff v4", "under ctx", func(*Setup) Loop {
				return backoff4Loop(func() backoff4.BackOff { return newExponential4() })
			}),
			peer("backoff v5", "", func(*Setup) Loop {
				return backoff5Loop(func() backoff5.BackOff { return newExponential5() })
			}),
			peer("go-resiliency", "its work returns no value: it assigns one to a variable of the caller", func(*Setup) Loop {
				return retrierLoop(retrier.LimitedExponentialBackoff(attempts-1, firstDelay, maxDelay))
			}),
			peer("failsafe-go, Get", "", func(*Setup) Loop { return failsafeGet(newFailsafeRetry[*Result]()) }),
		},
	}
}

func retryFailing() Case {
	return Case{
		Key:   "retry-failing",
		Title: "Retry, three attempts without delay, all failing",
		About: "The error of the call is the caller's in the end. fortify has no retry without delay.",
		Work:  Fail,
		Implementations: []Implementation{
			ours("holdfast", "", func(*Setup) Loop {
				return do(holdfast.Compose(retry.New(retry.Attempts(attempts), retry.Constant(0))))
			}),
			floor("three bare calls", "", func(*Setup) Loop {
				return func(n int, w Work) (v *Result, err error) {
					for range n * attempts {
						v, err = w.Do(w.Context)
					}
					return v, err
				}
			}),
			peer("avast/retry-go", "", func(*Setup) Loop {
				return avastLoop(avast.NewWithData[*Result](avast.Attempts(attempts), avast.Delay(0),
					avast.DelayType(avast.FixedDelay), avast.LastErrorOnly(true)))
			}),
			peer("go-retry", "a strategy of one's own: its constant one is never 0", func(*Setup) Loop {
				return sethvargoLoop(func() sethvargo.Backoff {
					return sethvargo.BackoffFunc(func() (time.Duration, bool) { return 0, false })
				})
			}),
			peer("backoff v4", "under ctx", func(*Setup) Loop {
				return backoff4Loop(func() backoff4.BackOff { return &backoff4.ZeroBackOff{} })
			}),
			peer("backoff v5", "", func(*Setup) Loop {
				return backoff5Loop(func() backoff5.BackOff { return &backoff5.ZeroBackOff{} })
			}),
			peer("go-resiliency", "", func(*Setup) Loop { return retrierLoop(retrier.ConstantBackoff(attempts-1, 0)) }),
			peer("failsafe-go, Get", "", func(*Setup) Loop {
				return failsafeGet(failsaferetry.NewBuilder[*Result]().WithMaxAttempts(attempts).Build())
			}),
		},
	}
}

func newRetry() *retry.Retry {
	return retry.New(retry.Attempts(attempts), retry.Exponential(firstDelay, maxDelay), retry.Jitter(retry.None))
}

func avastLoop(r *avast.RetrierWithData[*Result]) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = r.Do(w.Plain)
		}
		return v, err
	}
}

func sethvargoLoop(strategy func() sethvargo.Backoff) Loop {
	return func(n int, w Work) (v *Result, err error) {
		fn := func(ctx context.Context) (*Result, error) {
			v, err := w.Do(ctx)
			return v, sethvargo.RetryableError(err)
		}
		for range n {
			v, err = sethvargo.DoValue(w.Context, sethvargo.WithMaxRetries(attempts-1, strategy()), fn)
		}
		return v, err
	}
}

func newExponential4() *backoff4.ExponentialBackOff {
	return backoff4.NewExponentialBackOff(backoff4.WithInitialInterval(firstDelay), backoff4.WithMultiplier(2),
		backoff4.WithMaxInterval(maxDelay), backoff4.WithRandomizationFactor(0), backoff4.WithMaxElapsedTime(0))
}

func backoff4Loop(strategy func() backoff4.BackOff) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			b := backoff4.WithContext(backoff4.WithMaxRetries(strategy(), attempts-1), w.Context)
			v, err = backoff4.RetryWithData(w.Plain, b)
		}
		return v, err
	}
}

func newExponential5() *backoff5.ExponentialBackOff {
	return &backoff5.ExponentialBackOff{InitialInterval: firstDelay, Multiplier: 2, MaxInterval: maxDelay}
}

func backoff5Loop(strategy func() backoff5.BackOff) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = backoff5.Retry(w.Context, w.Plain, backoff5.WithBackOff(strategy()),
				backoff5.WithMaxTries(attempts), backoff5.WithMaxElapsedTime(0))
		}
		return v, err
	}
}

func retrierLoop(waits []time.Duration) Loop {
	r := retrier.New(waits, nil)
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = retried(r, w)
		}
		return v, err
	}
}

func retried(r *retrier.Retrier, w Work) (value *Result, err error) {
	err = r.RunCtx(w.Context, func(ctx context.Context) (err error) {
		value, err = w.Do(ctx)
		return err
	})
	return value, err
}
