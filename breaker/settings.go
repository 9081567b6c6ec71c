package breaker

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/fault"
	"github.com/holdfast-go/holdfast/internal/window"
	"github.com/holdfast-go/holdfast/policy"
)

const (
	kind = "breaker"

	defaultConsecutive  = 5
	defaultMinimum      = 10
	defaultOpenFor      = 30 * time.Second
	defaultTrialTimeout = 30 * time.Second

	maxLast = 1 << 24
)

type settings struct {
	name string

	consecutive    int // 0: no such condition
	consecutiveSet bool
	failureRate    *rateSettings
	failures       *failuresSettings
	slowCalls      *slowSettings

	slowIsFailure    time.Duration
	slowIsFailureSet bool
	minimum          int
	minimumSet       bool

	opening openingSettings

	concurrent, successes, tolerated int

	trialTimeout    time.Duration
	trialTimeoutSet bool

	// What follows from the above.
	measured bool // how long a call takes matters
	timed    bool // when a closed circuit's results come matters
	runOnly  bool // nothing but the run of failures is counted

	classify       policy.Classifier
	countDeadlines bool
	onStateChange  func(Transition)
	clock          policy.Clock
	nils           []string // options given nil, as the caller wrote them
}

// openingSettings is how long the circuit stays open: a pure function, or the user's,
// which is asked.
type openingSettings struct {
	setting string // as the caller wrote it
	rule    string // that it breaks, if any
	fixed   bool
	period  func(openings int) time.Duration
	ask     func(openings int) time.Duration
}

type rateSettings struct {
	rate    float64
	over    Window
	minimum int
}

type failuresSettings struct {
	n    int
	over Window
}

type slowSettings struct {
	slowerThan time.Duration
	rateSettings
}

func build(name string, opts []Option) (*settings, error) {
	s := &settings{name: name, concurrent: 1, successes: 1, clock: policy.SystemClock}
	OpenFor(defaultOpenFor).apply(s)
	for _, o := range opts {
		if o == nil {
			s.nils = append(s.nils, "Option(nil)")
			continue
		}
		o.apply(s)
	}
	s.addDefaults()
	return s, s.check()
}

// addDefaults fills in what depends on other settings.
func (s *settings) addDefaults() {
	if !s.consecutiveSet && s.failureRate == nil && s.failures == nil && s.slowCalls == nil {
		s.consecutive = defaultConsecutive
	}
	if s.failureRate != nil {
		s.failureRate.minimum = s.minimumOf(s.failureRate.over)
	}
	if s.slowCalls != nil {
		s.slowCalls.minimum = s.minimumOf(s.slowCalls.over)
	}
	s.measured = s.slowIsFailure > 0 || s.slowCalls != nil
	s.timed = s.measured ||
		s.failureRate != nil && s.failureRate.over.of == withinTime ||
		s.failures != nil && s.failures.over.of == withinTime
	s.runOnly = s.failureRate == nil && s.failures == nil && !s.measured
	if !s.trialTimeoutSet {
		s.trialTimeout = defaultTrialTimeout
		if s.opening.fixed {
			s.trialTimeout = s.opening.period(1)
		}
	}
}

func (s *settings) minimumOf(over Window) int {
	switch {
	case s.minimumSet:
		return s.minimum
	case over.of == lastCalls:
		return over.calls
	default:
		return defaultMinimum
	}
}

func (s *settings) check() error {
	faults := fault.For(kind, s.name)
	faults.Check(s.name != "", "must not be empty", "New(%q)", s.name)
	faults.Nil(s.nils)
	faults.Check(!s.consecutiveSet || s.consecutive >= 1, "must be at least 1", "ConsecutiveFailures(%d)", s.consecutive)
	if r := s.failureRate; r != nil {
		r.check(faults, fmt.Sprintf("FailureRate(%v, %s)", r.rate, r.over))
	}
	if f := s.failures; f != nil {
		setting := fmt.Sprintf("Failures(%d, %s)", f.n, f.over)
		faults.Check(f.n >= 1, "n must be at least 1", "%s", setting)
		faults.Check(f.over.of != lastCalls || f.n <= f.over.calls, "n must be at most the window's size", "%s", setting)
		f.over.check(faults, setting)
	}
	if slow := s.slowCalls; slow != nil {
		setting := fmt.Sprintf("SlowCalls(%s, %v, %s)", slow.slowerThan, slow.rate, slow.over)
		faults.Check(slow.slowerThan > 0, "slowerThan must be greater than 0", "%s", setting)
		slow.check(faults, setting)
	}
	faults.Check(!s.slowIsFailureSet || s.slowIsFailure > 0, "must be greater than 0", "SlowIsFailure(%s)", s.slowIsFailure)
	s.checkMinimum(faults)
	faults.Check(s.opening.rule == "", s.opening.rule, "%s", s.opening.setting)
	faults.Check(s.concurrent >= 1 && s.successes >= 1, "must both be at least 1", "Trials(%d, %d)", s.concurrent, s.successes)
	faults.Check(s.tolerated >= 0, "must be at least 0", "TolerateTrialFailures(%d)", s.tolerated)
	faults.Check(!s.trialTimeoutSet || s.trialTimeout > 0, "must be greater than 0", "TrialTimeout(%s)", s.trialTimeout)
	return faults.Err()
}

func (s *settings) checkMinimum(faults *fault.List) {
	if !s.minimumSet {
		return
	}
	faults.Check(s.minimum >= 1, "must be at least 1", "MinimumCalls(%d)", s.minimum)
	fits := func(over Window) {
		faults.Check(over.of != lastCalls || s.minimum <= over.calls,
			fmt.Sprintf("must be at most the size of %s", over), "MinimumCalls(%d)", s.minimum)
	}
	if s.failureRate != nil {
		fits(s.failureRate.over)
	}
	if s.slowCalls != nil {
		fits(s.slowCalls.over)
	}
	if s.failures != nil && s.failureRate == nil { // then Stats tells the rate in Failures' window
		fits(s.failures.over)
	}
}

func (r *rateSettings) check(faults *fault.List, setting string) {
	faults.Check(r.rate > 0 && r.rate <= 1, "rate must be greater than 0 and at most 1", "%s", setting)
	r.over.check(faults, setting)
}

func (w Window) check(faults *fault.List, setting string) {
	switch w.of {
	case lastCalls:
		faults.Check(w.calls >= 1 && w.calls <= maxLast, fmt.Sprintf("calls must be 1 to %d", maxLast), "%s", setting)
	case withinTime:
		faults.Check(w.span >= window.Buckets, "d must be at least 10ns", "%s", setting)
	default:
		faults.Check(false, "must be Last or Within", "%s", setting)
	}
}

func (w Window) make(now time.Duration) window.Window {
	if w.of == lastCalls {
		return window.NewLast(w.calls)
	}
	return window.NewWithin(w.span, now)
}

func constantly(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

// doubling is min(base · 2^(openings-1), max), without overflow.
func doubling(base, max time.Duration) func(int) time.Duration {
	return func(openings int) time.Duration {
		d := base
		for ; openings > 1 && d < max; openings-- {
			if d > math.MaxInt64/2 {
				return max
			}
			d *= 2
		}
		return min(d, max)
	}
}

// params are the effective settings, for a description.
func (s *settings) params() []slog.Attr {
	var params []slog.Attr
	if s.consecutive > 0 {
		params = append(params, slog.Int("consecutive_failures", s.consecutive))
	}
	if r := s.failureRate; r != nil {
		params = append(params, slog.Group("failure_rate", "rate", r.rate, "over", r.over.String(), "minimum_calls", r.minimum))
	}
	if f := s.failures; f != nil {
		params = append(params, slog.Group("failures", "n", f.n, "over", f.over.String()))
	}
	if slow := s.slowCalls; slow != nil {
		params = append(params, slog.Group("slow_calls",
			"slower_than", slow.slowerThan, "rate", slow.rate, "over", slow.over.String(), "minimum_calls", slow.minimum))
	}
	if s.slowIsFailure > 0 {
		params = append(params, slog.Duration("slow_is_failure", s.slowIsFailure))
	}
	return append(params,
		slog.String("open_for", s.opening.setting),
		slog.Int("concurrent_trials", s.concurrent),
		slog.Int("trial_successes", s.successes),
		slog.Int("tolerated_trial_failures", s.tolerated),
		slog.Duration("trial_timeout", s.trialTimeout),
		slog.Bool("classifier", s.classify != nil),
		slog.Bool("count_deadlines", s.countDeadlines),
	)
}
