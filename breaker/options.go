package breaker

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// An Option changes a setting of [New] or [Build]. The last of two equal options wins.
// None may be nil, nor a func, classifier or clock that is given to one.
type Option interface{ apply(*settings) }

// ConsecutiveFailures opens the circuit after n ≥ 1 failures in a row. Of several
// conditions, the first to hold opens the circuit. Default: 5, where no other condition is
// given.
func ConsecutiveFailures(n int) Option {
	return option(func(s *settings) { s.consecutive, s.consecutiveSet = n, true })
}

// FailureRate opens the circuit when the share of failures in the window is at least
// rate, 0 < rate ≤ 1, and the window holds [MinimumCalls]. The share is
// float64(failures)/float64(calls). Default: no such condition.
func FailureRate(rate float64, over Window) Option {
	return option(func(s *settings) { s.failureRate = &rateSettings{rate: rate, over: over} })
}

// Failures opens the circuit when the window holds n ≥ 1 failures, at whatever volume; n is
// at most the size of a [Last] window. Default: no such condition.
func Failures(n int, over Window) Option {
	return option(func(s *settings) { s.failures = &failuresSettings{n: n, over: over} })
}

// SlowCalls opens the circuit when the share of calls that took longer than slowerThan > 0
// is at least rate, 0 < rate ≤ 1, and the window holds [MinimumCalls]. Failures are slow
// calls too if they took as long, and so is a call whose caller left after that time. A
// trial that is slow has failed. Default: no such condition.
func SlowCalls(slowerThan time.Duration, rate float64, over Window) Option {
	return option(func(s *settings) { s.slowCalls = &slowSettings{slowerThan, rateSettings{rate: rate, over: over}} })
}

// SlowIsFailure has a success that took longer than slowerThan > 0 recorded as a failure.
// Default: how long a success took does not matter.
func SlowIsFailure(slowerThan time.Duration) Option {
	return option(func(s *settings) { s.slowIsFailure, s.slowIsFailureSet = slowerThan, true })
}

// MinimumCalls has a window hold n ≥ 1 calls before its rate can open the circuit; n is at
// most the size of a [Last] window. Default: that size for Last, 10 for [Within].
func MinimumCalls(n int) Option {
	return option(func(s *settings) { s.minimum, s.minimumSet = n, true })
}

// OpenFor keeps the circuit open for d > 0 before it admits trials. Default: 30s.
func OpenFor(d time.Duration) Option {
	return option(func(s *settings) {
		s.opening = openingSettings{setting: fmt.Sprintf("OpenFor(%s)", d), fixed: true, period: constantly(d)}
		if d <= 0 {
			s.opening.rule = "must be greater than 0"
		}
	})
}

// OpenForFunc asks f how long the circuit stays open. Its argument counts the openings
// in a row, from 1; the count starts again when trials close the circuit, at [Breaker.Reset],
// and at the last release. A result ≤ 0 is 0: trials at once.
//
// f is asked ahead, for the next opening, by New and after each transition: one question
// at a time, and never under a lock. Default: [OpenFor].
func OpenForFunc(f func(openings int) time.Duration) Option {
	return option(func(s *settings) {
		s.opening = openingSettings{setting: "OpenForFunc", ask: f}
		if f == nil {
			s.nils = append(s.nils, "OpenForFunc(nil)")
		}
	})
}

// OpenBackoff keeps the circuit open for base, then 2·base, 4·base and so on up to max,
// 0 < base ≤ max, while trials fail; after a close it is base again. Default: [OpenFor].
func OpenBackoff(base, max time.Duration) Option {
	return option(func(s *settings) {
		s.opening = openingSettings{setting: fmt.Sprintf("OpenBackoff(%s, %s)", base, max), period: doubling(base, max)}
		if base <= 0 || max < base {
			s.opening.rule = "must be 0 < base ≤ max"
		}
	})
}

// Trials sets how many trials a half-open circuit admits at once, and how many successes
// close it; both ≥ 1. Default: 1, 1.
func Trials(concurrent, successes int) Option {
	return option(func(s *settings) { s.concurrent, s.successes = concurrent, successes })
}

// TolerateTrialFailures lets n ≥ 0 trials fail before the next failure opens the circuit
// again. Default: 0, the first that fails opens it.
func TolerateTrialFailures(n int) Option {
	return option(func(s *settings) { s.tolerated = n })
}

// TrialTimeout has a trial that still runs after d > 0 count as failed, so that one that
// hangs keeps others out for no longer. Default: what [OpenFor] says, 30s where the open
// period is another option's.
func TrialTimeout(d time.Duration) Option {
	return option(func(s *settings) { s.trialTimeout, s.trialTimeoutSet = d, true })
}

// Classify has c decide what an outcome says. Default: the call, if it is a
// [policy.Judge], else [policy.DefaultClassifier]. Not asked about: refusals by inner
// policies, and errors of calls whose ctx is done, which are Ignored.
func Classify(c policy.Classifier) Option {
	return option(func(s *settings) {
		s.classify = c
		if c == nil {
			s.nils = append(s.nils, "Classify(nil)")
		}
	})
}

// CountDeadlines counts an error as a failure where the deadline of the ctx that the
// breaker was given has expired, whether it was the caller's or an outer timeout's.
// Default: Ignored, as a cancellation always is.
func CountDeadlines() Option {
	return option(func(s *settings) { s.countDeadlines = true })
}

// OnStateChange has f told every transition: in order, one at a time, and never under a
// lock, so f may call back into the breaker. f runs on the goroutine of the call or
// reader that came by, and so does a panic of f, once all has been settled and told:
// one that comes out of [Breaker.Isolate] leaves an isolation that nobody can release.
// Default: nobody is told.
func OnStateChange(f func(Transition)) Option {
	return option(func(s *settings) {
		s.onStateChange = f
		if f == nil {
			s.nils = append(s.nils, "OnStateChange(nil)")
		}
	})
}

// Clock gives the breaker the time. Default: [policy.SystemClock].
func Clock(c policy.Clock) Option {
	return option(func(s *settings) {
		s.clock = c
		if c == nil {
			s.nils = append(s.nils, "Clock(nil)")
		}
	})
}

// A Window is what a condition looks back on: [Last] or [Within]. It starts empty
// whenever the circuit closes. The zero Window is not valid.
type Window struct {
	of    windowKind
	calls int
	span  time.Duration
}

type windowKind uint8

const (
	lastCalls windowKind = iota + 1
	withinTime
)

// Last is a window over the last calls, 1 to 16 777 216; it takes a byte for each.
func Last(calls int) Window { return Window{of: lastCalls, calls: calls} }

// Within is a window over the time d ≥ 10ns, in 10 buckets that expire one at a time.
func Within(d time.Duration) Window { return Window{of: withinTime, span: d} }

// String returns "Last(10)" or "Within(1m0s)".
func (w Window) String() string {
	switch w.of {
	case lastCalls:
		return fmt.Sprintf("Last(%d)", w.calls)
	case withinTime:
		return fmt.Sprintf("Within(%s)", w.span)
	default:
		return "Window{}"
	}
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }
