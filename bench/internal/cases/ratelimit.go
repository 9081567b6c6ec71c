package cases

import (
	failsafelimiter "github.com/failsafe-go/failsafe-go/ratelimiter"
	fortifylimit "github.com/felixgeelhaar/fortify/ratelimit"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ratelimit"
	uberlimit "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

func rateLimit() Case {
	return Case{
		Key:   "ratelimit",
		Title: "Rate limiter",
		About: "A token is there: the rate and the burst are far above what is asked for.",
		Implementations: []Implementation{
			ours("holdfast, by hand", "Allow", func(s *Setup) Loop { return allowRate(newLimiter(s)) }),
			ours("holdfast, in a pipeline", "", func(s *Setup) Loop { return do(holdfast.Compose(newLimiter(s))) }),
			bareCall(),
			peer("x/time/rate", "Allow; token bucket", newXTime),
			peer("uber ratelimit", "Take; waits instead of refusing, and takes no ctx", newUber),
			peer("failsafe-go, permits", "TryAcquirePermit; as many per period, at its edges twice", func(s *Setup) Loop {
				return failsafeTokens(newFailsafeLimiter(s))
			}),
			peer("failsafe-go, Get", "", func(s *Setup) Loop { return failsafeGet(newFailsafeLimiter(s)) }),
			peer("fortify", "Allow; token bucket, one per key", newFortifyLimiter),
		},
	}
}

func newLimiter(s *Setup) *ratelimit.Limiter {
	return ratelimit.New(ratelimit.Per(s.Tokens, s.Period), s.Tokens)
}

func allowRate(l *ratelimit.Limiter) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			if !l.Allow() {
				v, err = nil, errRefused
				continue
			}
			v, err = w.Do(w.Context)
		}
		return v, err
	}
}

func newXTime(s *Setup) Loop {
	l := rate.NewLimiter(rate.Limit(float64(s.Tokens)/s.Period.Seconds()), s.Tokens)
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			if !l.Allow() {
				v, err = nil, errRefused
				continue
			}
			v, err = w.Do(w.Context)
		}
		return v, err
	}
}

func newUber(s *Setup) Loop {
	l := uberlimit.New(s.Tokens, uberlimit.Per(s.Period), uberlimit.WithSlack(s.Tokens))
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			l.Take()
			v, err = w.Do(w.Context)
		}
		return v, err
	}
}

func failsafeTokens(l failsafelimiter.RateLimiter[*Result]) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			if !l.TryAcquirePermit() {
				v, err = nil, failsafelimiter.ErrExceeded
				continue
			}
			v, err = w.Do(w.Context)
		}
		return v, err
	}
}

func newFortifyLimiter(s *Setup) Loop {
	l := fortifylimit.New(fortifylimit.Config{Rate: s.Tokens, Burst: s.Tokens, Interval: s.Period})
	s.Cleanup(func() { _ = l.Close() })
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			if !l.Allow(w.Context, "bench") {
				v, err = nil, errRefused
				continue
			}
			v, err = w.Do(w.Context)
		}
		return v, err
	}
}
