package breaker

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/window"
	"github.com/holdfast-go/holdfast/policy"
)

// State is what a circuit does with calls.
type State uint8

// The states.
const (
	Closed   State = iota + 1 // calls run
	Open                      // calls are refused until the open period has elapsed
	HalfOpen                  // trials are admitted
	Isolated                  // calls are refused until every isolation is released
)

// String returns "closed", "open", "half-open", "isolated", or "state(n)" for any other.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	case Isolated:
		return "isolated"
	default:
		return fmt.Sprintf("state(%d)", uint8(s))
	}
}

// MarshalText has JSON show the state as String does.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// machine is the state machine of a circuit: each method maps the state, an event and
// the time to a new state. It is pure: it holds no lock, reads no clock and calls
// nobody. Times are elapsed time; one from before the last is taken as the last.
type machine struct {
	*settings

	state      State
	generation uint64 // counts transitions: a result from an older one moves nothing
	last       time.Duration

	run      int // failures in a row
	rates    window.Window
	failed   window.Window
	slow     window.Window
	openings int // in a row

	openUntil   time.Duration
	firstPeriod time.Duration // how long the first opening in a row lasts
	nextPeriod  time.Duration // how long the next one does

	trials                 []trial // running, oldest first
	trialID                uint64
	trialOK, trialFailures int

	isolations int
	late       uint64
	moves      []move // not told yet
}

// trial is a call that was admitted half-open.
type trial struct {
	id    uint64
	start time.Duration
}

// ticket is an admission.
type ticket struct {
	generation uint64
	trial      uint64        // 0: admitted closed
	start      time.Duration // set where settings.measured, and for trials
}

// word is Breaker.word while the circuit that admitted t is closed as it was then, and
// has no run of failures. A trial's is none.
func (t ticket) word() uint64 { return t.generation*wordGeneration | wordClosed }

// move is a transition.
type move struct {
	from, to State
	at       time.Duration
	reason   string
	period   time.Duration // of an opening
}

// result is a finished call: what it says, and whether it was slow. Ignored and slow
// says only that.
type result struct {
	outcome policy.Outcome
	slow    bool
}

func newMachine(s *settings, firstPeriod, now time.Duration) machine {
	m := machine{settings: s, state: Closed, last: now, firstPeriod: firstPeriod, nextPeriod: firstPeriod}
	if s.failureRate != nil {
		m.rates = s.failureRate.over.make(now)
	}
	if s.failures != nil {
		m.failed = s.failures.over.make(now)
	}
	if s.slowCalls != nil {
		m.slow = s.slowCalls.over.make(now)
	}
	return m
}

// advance makes the transitions that time alone has brought by now, each at its own
// instant, and returns the time to go on with.
func (m *machine) advance(now time.Duration) time.Duration {
	m.last = max(m.last, now)
	if m.state == Open || m.state == HalfOpen {
		m.catchUp()
	}
	return m.last
}

func (m *machine) catchUp() {
	for {
		switch {
		case m.state == Open && m.openUntil <= m.last:
			m.move(HalfOpen, m.openUntil, "open period elapsed")
		case m.state == HalfOpen && len(m.trials) > 0 && m.trialEnd(m.trials[0]) <= m.last:
			expired := m.trials[0]
			m.trials = m.trials[1:]
			m.failTrial(m.trialEnd(expired), fmt.Sprintf("trial still running after %s", m.trialTimeout))
		default:
			return
		}
	}
}

// admit admits a call or tells why not, and for how long at least.
func (m *machine) admit(now time.Duration) (t ticket, retryIn time.Duration, ok bool) {
	now = m.advance(now)
	switch m.state {
	case Closed:
		return ticket{generation: m.generation, start: now}, 0, true
	case HalfOpen:
		if len(m.trials) == m.concurrent {
			return ticket{}, m.trialEnd(m.trials[0]) - now, false
		}
		m.trialID++
		m.trials = append(m.trials, trial{m.trialID, now})
		return ticket{m.generation, m.trialID, now}, 0, true
	case Open:
		return ticket{}, m.openUntil - now, false
	default:
		return ticket{}, 0, false
	}
}

// record settles the call that t admitted, and tells why a closed circuit must open
// now, or "". A caller that gets a reason calls open with it; only then, for trials, and
// where settings.timed, does now have to be known.
func (m *machine) record(t ticket, r result, now time.Duration) (reason string) {
	now = m.advance(now)
	switch {
	case t.generation != m.generation:
		m.late++
	case t.trial == 0:
		return m.count(r, now)
	default:
		m.recordTrial(t, r, now)
	}
	return ""
}

// count records a result of the closed circuit and tells why it must open, or "".
func (m *machine) count(r result, now time.Duration) (reason string) {
	failure := r.outcome == policy.Failure
	if m.slow != nil && (r.outcome != policy.Ignored || r.slow) {
		m.slow.Record(now, failure, r.slow)
	}
	if r.outcome != policy.Ignored {
		if m.run++; !failure {
			m.run = 0
		}
		if m.rates != nil {
			m.rates.Record(now, failure, false)
		}
		if m.failed != nil {
			m.failed.Record(now, failure, false)
		}
	} else if !r.slow {
		return ""
	}
	return m.condition(now)
}

// condition tells which condition holds, or "".
func (m *machine) condition(now time.Duration) string {
	if m.consecutive > 0 && m.run >= m.consecutive {
		return fmt.Sprintf("failures in a row: %d", m.run)
	}
	if m.rates != nil {
		c := m.rates.Counts(now)
		if m.failureRate.holds(c.Failures, c.Calls) {
			return m.failureRate.reason("failure rate", c.Failures, c.Calls)
		}
	}
	if m.failed != nil {
		if c := m.failed.Counts(now); c.Failures >= m.failures.n {
			return fmt.Sprintf("failures in %s: %d", m.failures.over, c.Failures)
		}
	}
	if m.slow != nil {
		c := m.slow.Counts(now)
		if m.slowCalls.holds(c.Slow, c.Calls) {
			return m.slowCalls.reason("slow call rate", c.Slow, c.Calls)
		}
	}
	return ""
}

func (r *rateSettings) holds(k, n int) bool {
	return k > 0 && n >= r.minimum && float64(k)/float64(n) >= r.rate // k > 0 saves most divisions
}

func (r *rateSettings) reason(what string, k, n int) string {
	return fmt.Sprintf("%s %s ≥ %s of %d calls", what, percent(float64(k)/float64(n)), percent(r.rate), n)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) + "%" }

// recordTrial settles a trial of this generation, unless it has been given up.
func (m *machine) recordTrial(t ticket, r result, now time.Duration) {
	i := 0
	for i < len(m.trials) && m.trials[i].id != t.trial {
		i++
	}
	if i == len(m.trials) {
		m.late++
		return
	}
	m.trials = append(m.trials[:i], m.trials[i+1:]...)

	switch {
	case r.slow:
		m.failTrial(now, fmt.Sprintf("trial slower than %s", m.slowCalls.slowerThan))
	case r.outcome == policy.Failure:
		m.failTrial(now, "trial failed")
	case r.outcome == policy.Success:
		if m.trialOK++; m.trialOK == m.successes {
			m.move(Closed, now, fmt.Sprintf("trials succeeded: %d", m.trialOK))
		}
	}
}

func (m *machine) failTrial(at time.Duration, reason string) {
	if m.trialFailures++; m.trialFailures > m.tolerated {
		m.open(at, reason)
	}
}

func (m *machine) trialEnd(t trial) time.Duration { return after(t.start, m.trialTimeout) }

// after is t + d, at most the end of time.
func after(t, d time.Duration) time.Duration {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

func (m *machine) open(at time.Duration, reason string) {
	m.openings++
	m.openUntil = after(at, m.nextPeriod)
	m.move(Open, at, reason)
	if m.opening.period != nil {
		m.nextPeriod = m.opening.period(m.openings + 1)
	}
}

// isolate adds an isolation.
func (m *machine) isolate(now time.Duration) {
	now = m.advance(now)
	if m.isolations++; m.isolations == 1 {
		m.move(Isolated, now, "isolated")
	}
}

// release ends an isolation; the last leaves the circuit closed.
func (m *machine) release(now time.Duration) {
	now = m.advance(now)
	if m.isolations--; m.isolations == 0 {
		m.move(Closed, now, "isolation released")
	}
}

// reset closes the circuit, also one that is closed, whose running calls are then late.
// Under an isolation it closes what that hides, and no call runs that could be late.
func (m *machine) reset(now time.Duration) {
	now = m.advance(now)
	switch m.state {
	case Isolated:
		m.close(now)
	case Closed:
		m.generation++
		m.close(now)
	default:
		m.move(Closed, now, "reset")
	}
}

// move goes to another state, where every count starts anew.
func (m *machine) move(to State, at time.Duration, reason string) {
	move := move{from: m.state, to: to, at: at, reason: reason}
	if to == Open {
		move.period = m.openUntil - at
	}
	m.moves = append(m.moves, move)
	m.generation++
	m.state = to
	m.run, m.trialOK, m.trialFailures = 0, 0, 0
	m.trials = nil
	if to == Closed {
		m.close(at)
	}
}

// close empties what a closed circuit counts.
func (m *machine) close(at time.Duration) {
	m.run, m.openings = 0, 0
	for _, w := range []window.Window{m.rates, m.failed, m.slow} {
		if w != nil {
			w.Reset(at)
		}
	}
	m.nextPeriod = m.firstPeriod
}

// stats is the machine as of now.
func (m *machine) stats(now time.Duration) Stats {
	now = m.advance(now)
	s := Stats{
		State: m.state, ConsecutiveFailures: m.run, Openings: m.openings,
		FailureRate: -1, SlowRate: -1, Late: m.late,
	}
	switch m.state {
	case Closed:
		m.countsOf(&s, now)
	case Open:
		s.RetryIn = m.openUntil - now
	case HalfOpen:
		if len(m.trials) == m.concurrent {
			s.RetryIn = m.trialEnd(m.trials[0]) - now
		}
	}
	return s
}

func (m *machine) countsOf(s *Stats, now time.Duration) {
	share := func(k, n, minimum int) float64 {
		if n == 0 || n < minimum {
			return -1
		}
		return float64(k) / float64(n)
	}
	var c window.Counts
	minimum := 0
	switch {
	case m.rates != nil:
		c, minimum = m.rates.Counts(now), m.failureRate.minimum
	case m.failed != nil:
		c, minimum = m.failed.Counts(now), m.minimumOf(m.failures.over)
	case m.slow != nil:
		c, minimum = m.slow.Counts(now), m.slowCalls.minimum
	}
	s.Calls, s.Failures, s.FailureRate = c.Calls, c.Failures, share(c.Failures, c.Calls, minimum)
	if m.slow != nil {
		c = m.slow.Counts(now)
		s.SlowCalls, s.SlowRate = c.Slow, share(c.Slow, c.Calls, m.slowCalls.minimum)
	}
}
