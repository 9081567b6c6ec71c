package breaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

// model is a circuit as one would keep it by hand: it remembers every result, and lives
// through time nanosecond by nanosecond.
type model struct {
	*settings

	now        time.Duration
	state      State
	generation int
	since      time.Duration // the circuit closed
	results    []modelResult // since then
	openUntil  time.Duration
	openings   int
	trials     map[int]time.Duration // id → start
	ok, failed int
	isolations int
	late       uint64
	ids        int
	told       []string
}

type modelResult struct {
	result
	at time.Duration
}

type modelTicket struct{ generation, id int }

func (m *model) live(d time.Duration) {
	for end := m.now + d; m.now < end; {
		m.now++
		m.look()
	}
}

// look makes the transitions of this very nanosecond.
func (m *model) look() {
	if m.state == Open && m.now >= m.openUntil {
		m.to(HalfOpen)
	}
	for id := 0; id <= m.ids; id++ {
		if start, running := m.trials[id]; running && m.now-start >= m.trialTimeout {
			delete(m.trials, id)
			m.fail()
		}
	}
}

func (m *model) to(s State) {
	m.told = append(m.told, fmt.Sprintf("%s→%s at %d", m.state, s, m.now))
	m.state = s
	m.renew()
}

func (m *model) renew() {
	m.generation++
	m.results, m.trials, m.ok, m.failed = nil, map[int]time.Duration{}, 0, 0
	if m.state == Closed {
		m.since, m.openings = m.now, 0
	}
}

func (m *model) trip() {
	m.openings++
	if m.opening.period != nil {
		m.openUntil = m.now + m.opening.period(m.openings)
	} else {
		m.openUntil = m.now + m.opening.ask(m.openings)
	}
	m.to(Open)
	m.look()
}

func (m *model) fail() {
	if m.failed++; m.failed > m.tolerated {
		m.trip()
	}
}

func (m *model) admit() (modelTicket, bool) {
	if m.state == Closed {
		return modelTicket{m.generation, 0}, true
	}
	if m.state != HalfOpen || len(m.trials) >= m.concurrent {
		return modelTicket{}, false
	}
	m.ids++
	m.trials[m.ids] = m.now
	return modelTicket{m.generation, m.ids}, true
}

// settle judges a finished call by what it took.
func (m *model) settle(t modelTicket, outcome policy.Outcome, left bool, took time.Duration) {
	if outcome == policy.Success && m.slowIsFailure > 0 && took > m.slowIsFailure {
		outcome = policy.Failure
	}
	slow := m.slowCalls != nil && took > m.slowCalls.slowerThan && (outcome != policy.Ignored || left)
	m.record(t, result{outcome, slow})
}

func (m *model) record(t modelTicket, r result) {
	_, running := m.trials[t.id]
	switch {
	case t.generation != m.generation, t.id > 0 && !running:
		m.late++
	case t.id > 0:
		delete(m.trials, t.id)
		switch {
		case r.slow || r.outcome == policy.Failure:
			m.fail()
		case r.outcome == policy.Success:
			if m.ok++; m.ok == m.successes {
				m.to(Closed)
			}
		}
	case r.slow || r.outcome != policy.Ignored:
		m.results = append(m.results, modelResult{r, m.now})
		if m.holds() {
			m.trip()
		}
	}
}

// in returns what of the results a window holds, those that say something of failures or
// all.
func (m *model) in(w Window, all bool) (kept []modelResult) {
	for _, r := range m.results {
		if all || r.outcome != policy.Ignored {
			kept = append(kept, r)
		}
	}
	if w.of == lastCalls {
		return kept[max(0, len(kept)-w.calls):]
	}
	bucket := func(at time.Duration) time.Duration { return (at - m.since) * 10 / w.span }
	for len(kept) > 0 && bucket(kept[0].at) <= bucket(m.now)-10 {
		kept = kept[1:]
	}
	return kept
}

func tally(results []modelResult) (failures, slow, run int) {
	for _, r := range results {
		run++
		if r.outcome == policy.Failure {
			failures++
		} else {
			run = 0
		}
		if r.slow {
			slow++
		}
	}
	return failures, slow, run
}

func (m *model) holds() bool {
	if _, _, run := tally(m.in(Last(1<<30), false)); m.consecutive > 0 && run >= m.consecutive {
		return true
	}
	if r := m.failureRate; r != nil {
		in := m.in(r.over, false)
		if k, _, _ := tally(in); len(in) >= r.minimum && float64(k)/float64(len(in)) >= r.rate {
			return true
		}
	}
	if f := m.failures; f != nil {
		if k, _, _ := tally(m.in(f.over, false)); k >= f.n {
			return true
		}
	}
	if s := m.slowCalls; s != nil {
		in := m.in(s.over, true)
		if _, k, _ := tally(in); len(in) >= s.minimum && float64(k)/float64(len(in)) >= s.rate {
			return true
		}
	}
	return false
}

// The circuits that the machine and the model are compared as.
var fuzzed = [][]Option{
	{ConsecutiveFailures(3), OpenFor(7)},
	{FailureRate(.5, Last(4)), OpenBackoff(5, 30), Trials(2, 2)},
	{FailureRate(.6, Within(20)), MinimumCalls(3), OpenFor(9), TrialTimeout(4), Trials(3, 2), TolerateTrialFailures(2)},
	{Failures(3, Within(15)), OpenFor(1), TrialTimeout(100)},
	{SlowCalls(5, .5, Last(3)), Failures(4, Last(10)), OpenFor(20), TrialTimeout(3)},
	{SlowCalls(5, .5, Within(30)), FailureRate(1, Last(2)), ConsecutiveFailures(5), MinimumCalls(2), TolerateTrialFailures(1)},
	{ConsecutiveFailures(1), OpenForFunc(func(int) time.Duration { return 0 }), TrialTimeout(2)},
	{ConsecutiveFailures(2), SlowIsFailure(4), OpenForFunc(func(n int) time.Duration { return time.Duration(n) * 3 })},
}

// FuzzMachine lets a breaker and the model live through the same operations, the breaker
// looking only now and then.
func FuzzMachine(f *testing.F) {
	f.Add(uint8(0), []byte{0, 1, 0, 1, 0, 1, 0x37, 0, 2, 0, 1})
	f.Add(uint8(2), []byte("any operations at all, in any order, will do here"))
	for i := range fuzzed {
		f.Add(uint8(i), []byte{0, 0, 0, 1, 9, 17, 1, 1, 0x2f, 0xff, 0, 0, 2, 2, 10, 0, 3, 4, 0, 5, 0, 1, 6, 0, 0xf7, 0, 1})
	}
	f.Fuzz(func(t *testing.T, circuit uint8, script []byte) {
		var told []string
		clock := policytest.NewClock(time.Unix(0, 0))
		options := append([]Option{Clock(clock), OnStateChange(func(m Transition) {
			told = append(told, fmt.Sprintf("%s→%s at %d", m.From, m.To, m.At.UnixNano()))
		})}, fuzzed[int(circuit)%len(fuzzed)]...)
		b := New("payments", options...)
		naive := &model{settings: b.settings, state: Closed, trials: map[int]time.Duration{}}
		type running struct {
			ticket ticket
			naive  modelTicket
			start  time.Duration
		}
		var calls []running
		var releases []func()
		for i, op := range script[:min(len(script), 200)] {
			argument := int(op >> 3)
			switch op & 7 {
			case 0, 1:
				got, err := b.admit(t.Context())
				want, ok := naive.admit()
				if (err == nil) != ok {
					t.Fatalf("operation %d at %d: %v, want admitted: %t", i, naive.now, err, ok)
				}
				if ok {
					calls = append(calls, running{got, want, naive.now})
				}
			case 2, 3:
				if len(calls) == 0 {
					continue
				}
				j := argument / 6 % len(calls)
				call := calls[j]
				calls = append(calls[:j], calls[j+1:]...)
				outcome := policy.Outcome(argument%3 + 1)
				left := outcome == policy.Ignored && argument%2 == 1
				b.record(t.Context(), call.ticket, outcome, left)
				naive.settle(call.naive, outcome, left, naive.now-call.start)
			case 4:
				releases = append(releases, b.Isolate())
				if naive.isolations++; naive.isolations == 1 {
					naive.to(Isolated)
				}
			case 5:
				if len(releases) == 0 {
					continue
				}
				releases[0]()
				releases = releases[1:]
				if naive.isolations--; naive.isolations == 0 {
					naive.to(Closed)
				}
			case 6:
				b.Reset()
				switch naive.state {
				case Isolated:
					naive.openings = 0
				case Closed:
					naive.renew()
				default:
					naive.to(Closed)
				}
			case 7:
				clock.Advance(time.Duration(argument) * 2)
				naive.live(time.Duration(argument) * 2)
			}
		}
		got := b.Stats()
		if got.State != naive.state || got.Late != naive.late || got.Openings != naive.openings {
			t.Fatalf("at %d: %+v, want %s, %d late, %d openings", naive.now, got, naive.state, naive.late, naive.openings)
		}
		if fmt.Sprint(told) != fmt.Sprint(naive.told) {
			t.Fatalf("transitions %v, want %v", told, naive.told)
		}
	})
}

// A time from before the last, as of a caller that was preempted on its way to the lock,
// is taken as the last.
func TestTimeOutOfOrder(t *testing.T) {
	s, err := build("payments", []Option{ConsecutiveFailures(1), OpenFor(10)})
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(s, 10, 0)
	m.isolate(100)
	m.release(100)
	tk, _, _ := m.admit(50)
	m.open(m.advance(40), m.record(tk, result{outcome: policy.Failure}, 40))
	if m.openUntil != 110 {
		t.Errorf("open until %d, want 110", m.openUntil)
	}
	if _, retryIn, ok := m.admit(90); ok || retryIn != 10 {
		t.Errorf("admitted %t, retry in %d, want 10", ok, retryIn)
	}
}
