package retry

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/fault"
	"github.com/holdfast-go/holdfast/policy"
)

const (
	kind = "retry"

	unlimited = time.Duration(math.MaxInt64)
)

// An Option changes a setting of [New] or [Build]. The last of two equal options wins;
// [Exponential], [Constant] and [Backoff] are equal. None may be nil, nor a func,
// classifier or clock that is given to one.
type Option interface{ apply(*settings) }

// Name names the retry in events, errors and descriptions; not empty. Default: "retry".
func Name(name string) Option {
	return option(func(s *settings) { s.name = name })
}

// Attempts allows n ≥ 1 attempts in all, the first included; 1 never repeats. Default: 3.
func Attempts(n int) Option {
	return option(func(s *settings) { s.attempts = n })
}

// MaxElapsed begins no wait that would end later than d > 0 after the call began. It does
// not interrupt an attempt: a timeout does. Default: no limit.
func MaxElapsed(d time.Duration) Option {
	return option(func(s *settings) { s.maxElapsed = d })
}

// Exponential waits base, and twice as long each further time, up to max, 0 < base ≤ max;
// [Jitter] shortens that. Default: 100ms, 10s.
func Exponential(base, max time.Duration) Option {
	return option(func(s *settings) { s.strategy, s.base, s.max = exponential, base, max })
}

// Constant waits d ≥ 0 each time; 0 is no wait, and no timer. Default: [Exponential].
func Constant(d time.Duration) Option {
	return option(func(s *settings) { s.strategy, s.base, s.max = constant, d, d })
}

// Backoff waits as a strategy of package backoff says. f makes a fresh one for each
// call that needs one, after its first attempt failed; it is Reset before use. Its
// waits are taken as they are, without [Jitter]; a negative one is none, and
// backoff.Stop ends the call with [ErrStopped], as an ExponentialBackOff does after
// its MaxElapsedTime. f must be safe for concurrent use, and must not return nil.
// Default: [Exponential].
func Backoff(f func() backoff.BackOff) Option {
	return option(func(s *settings) {
		s.strategy, s.backoff = custom, f
		if f == nil {
			s.nils = append(s.nils, "Backoff(nil)")
		}
	})
}

// Jitter spreads the waits of [Exponential] and [Constant]. [Decorrelated] takes the
// place of Exponential's doubling, and leaves Constant as it is. Default: [Full] for
// Exponential, [None] for Constant.
func Jitter(j JitterKind) Option {
	return option(func(s *settings) { s.jitter, s.jitterSet = j, true })
}

// If has an outcome tried again that c calls a Failure, be it an error or a value.
// Where the call is a [policy.Judge], it must say so too. Default: the Judge decides,
// else every error is tried again.
//
// Whatever c says, never tried again are refusals (see [policy.Rejected]), errors of
// [Permanent], and anything once ctx is done.
func If(c policy.Classifier) Option {
	return option(func(s *settings) {
		s.classify = c
		if c == nil {
			s.nils = append(s.nils, "If(nil)")
		}
	})
}

// MaxRetryAfter obeys the wait that the other side may ask for, by an error's
// RetryAfter method (see [policy.RetryAfter]) or as the call's Judge reports: the wait
// is then the larger of that and the backoff's. One longer than d ≥ 0 ends the call with
// [ErrRetryAfter]; with 0, any does. Default: 1m.
func MaxRetryAfter(d time.Duration) Option {
	return option(func(s *settings) { s.maxRetryAfter = d })
}

// OnRetry has f called before each wait, on the call's goroutine and with its ctx,
// with the attempt that failed. No lock is held. f must be safe for concurrent use; its
// panic reaches the caller. Default: nobody is called.
func OnRetry(f func(ctx context.Context, a Attempt)) Option {
	return option(func(s *settings) {
		s.onRetry = f
		if f == nil {
			s.nils = append(s.nils, "OnRetry(nil)")
		}
	})
}

// Clock gives the retry the time. Default: [policy.SystemClock].
func Clock(c policy.Clock) Option {
	return option(func(s *settings) {
		s.clock = c
		if c == nil {
			s.nils = append(s.nils, "Clock(nil)")
		}
	})
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

type settings struct {
	name          string
	clock         policy.Clock
	attempts      int
	maxElapsed    time.Duration // unlimited by default
	strategy      strategy
	base, max     time.Duration          // of exponential and constant, where they are equal
	backoff       func() backoff.BackOff // of custom
	jitter        JitterKind
	jitterSet     bool
	classify      policy.Classifier
	maxRetryAfter time.Duration
	onRetry       func(context.Context, Attempt)
	nils          []string // options given nil, as the caller wrote them
}

// newDelays are the waits of one call.
func (s *settings) newDelays() delays {
	d := newDelays(s.strategy, s.jitter, s.base, s.max)
	if s.strategy == custom {
		if d.custom = s.backoff(); d.custom == nil {
			panic(fmt.Sprintf("%s %q: Backoff: the func returned nil: must make a strategy", kind, s.name))
		}
		d.custom.Reset() // an ExponentialBackOff made as a literal waits 0 without
	}
	return d
}

func build(opts []Option) (settings, error) {
	s := settings{
		name: kind, clock: policy.SystemClock, attempts: 3, maxElapsed: unlimited,
		strategy: exponential, base: 100 * time.Millisecond, max: 10 * time.Second,
		maxRetryAfter: time.Minute,
	}
	for _, o := range opts {
		if o == nil {
			s.nils = append(s.nils, "Option(nil)")
			continue
		}
		o.apply(&s)
	}
	switch {
	case s.jitterSet:
	case s.strategy == exponential:
		s.jitter = Full
	default:
		s.jitter = None
	}
	return s, s.check()
}

func (s *settings) check() error {
	faults := fault.For(kind, s.name)
	faults.Nil(s.nils)
	faults.Check(s.name != "", "must not be empty", "Name(%q)", s.name)
	faults.Check(s.attempts >= 1, "must be at least 1", "Attempts(%d)", s.attempts)
	faults.Check(s.maxElapsed > 0, "must be greater than 0", "MaxElapsed(%v)", s.maxElapsed)
	switch s.strategy {
	case exponential:
		faults.Check(s.base > 0, "base must be greater than 0", "Exponential(%v, %v)", s.base, s.max)
		faults.Check(s.base <= s.max, "max must be at least base", "Exponential(%v, %v)", s.base, s.max)
	case constant:
		faults.Check(s.base >= 0, "must be at least 0", "Constant(%v)", s.base)
	}
	faults.Check(s.jitter >= Full && s.jitter <= None, "must be Full, Equal, Decorrelated or None", "Jitter(%d)", s.jitter)
	faults.Check(s.maxRetryAfter >= 0, "must be at least 0", "MaxRetryAfter(%v)", s.maxRetryAfter)
	return faults.Err()
}
