package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("down")

// ignoring calls what is errIgnored Ignored.
var (
	errIgnored = errors.New("not found")
	ignoring   = breaker.Classify(policy.IgnoreErrors(errIgnored))
)

// circuit is a breaker on a clock that stands still, with a handler to call.
type circuit struct {
	*breaker.Breaker

	clock *policytest.Clock
	call  policy.Handler
	moves []breaker.Transition
}

func newCircuit(opts ...breaker.Option) *circuit {
	c := &circuit{clock: policytest.NewClock(time.Unix(0, 0))}
	opts = append([]breaker.Option{
		breaker.Clock(c.clock),
		breaker.OnStateChange(func(t breaker.Transition) { c.moves = append(c.moves, t) }),
	}, opts...)
	c.Breaker = breaker.New("payments", opts...)
	c.call = c.Wrap(policy.Invoke)
	return c
}

// returning is a call that takes some time.
func (c *circuit) returning(value any, err error, took time.Duration) policy.Call {
	return policy.CallFunc(func(context.Context) (any, error) {
		c.clock.Advance(took)
		return value, err
	})
}

// play runs a script of space-separated steps:
//
//	S F I R      a call that succeeds, fails, is judged Ignored, is refused inside
//	S/3s         a call that takes 3s
//	X            a call that must be refused
//	F*5          a step five times
//	+3s          time passes
//	=open        the state must be open
//	reset        Reset
func (c *circuit) play(t *testing.T, script string) {
	t.Helper()
	outcomes := map[string]error{"S": nil, "F": errDown, "I": errIgnored, "R": policy.ErrRejected}
	for i, step := range strings.Fields(script) {
		step, times, _ := strings.Cut(step, "*")
		n := 1
		fmt.Sscan(times, &n)
		for range n {
			at := fmt.Sprintf("step %d, %s, at +%s", i+1, step, c.clock.Elapsed())
			name, took, _ := strings.Cut(step, "/")
			duration, _ := time.ParseDuration(took)
			outcome, isCall := outcomes[name]
			switch {
			case isCall:
				_, err := c.call(t.Context(), c.returning(nil, outcome, duration))
				if errors.Is(err, breaker.ErrOpen) {
					t.Fatalf("%s: refused: %v", at, err)
				}
			case step == "X":
				_, err := c.call(t.Context(), policy.CallFunc(func(context.Context) (any, error) {
					t.Fatalf("%s: the call ran", at)
					return nil, nil
				}))
				if !errors.Is(err, breaker.ErrOpen) || !policy.Rejected(err) {
					t.Fatalf("%s: error %v, want a refusal", at, err)
				}
			case step == "reset":
				c.Reset()
			case step[0] == '+':
				d, err := time.ParseDuration(step[1:])
				if err != nil {
					t.Fatal(err)
				}
				c.clock.Advance(d)
			case step[0] == '=':
				if got := c.State().String(); got != step[1:] {
					t.Fatalf("%s: state %s; transitions %v", at, got, c.moves)
				}
			default:
				t.Fatalf("%s: no such step", at)
			}
		}
	}
}

func TestTripping(t *testing.T) {
	type options = []breaker.Option
	var (
		half    = breaker.FailureRate(.5, breaker.Last(10))
		half20s = options{breaker.FailureRate(.5, breaker.Within(20*time.Second)), breaker.MinimumCalls(5)}
		slow    = breaker.SlowCalls(2*time.Second, .5, breaker.Last(10))
	)
	tests := []struct {
		name    string
		options options
		script  string
	}{
		{"BEHAVIOUR 1: default", nil, "F*4 =closed F =open"},
		{"BEHAVIOUR 1: a success starts the run anew", nil, "F*4 S F*4 =closed F =open"},
		{"BEHAVIOUR 2: six of ten", options{half}, "S S F F S F F F S =closed F =open"},
		{"BEHAVIOUR 2: another order", options{half}, "S F S F F S F F S =closed F =open"},
		{"BEHAVIOUR 2: at least, not more than", options{half}, "F S F S F S F S F =closed S =open"},
		{"BEHAVIOUR 3: nine failures", options{half}, "F*9 =closed F =open"},
		{"BEHAVIOUR 3: the tenth decides, a success too", options{half}, "F*9 =closed S =open"},
		{"BEHAVIOUR 4: all of ten", options{breaker.FailureRate(1, breaker.Last(10))}, "F*9 S =closed F*9 =closed F =open"},
		{"BEHAVIOUR 5: a third", options{breaker.FailureRate(1.0/3, breaker.Last(3))}, "F S =closed S =open"},
		{"BEHAVIOUR 5: a fifth", options{breaker.FailureRate(.2, breaker.Last(5))}, "S*4 F =open"},
		{"BEHAVIOUR 5: eight of ten", options{breaker.FailureRate(.8, breaker.Last(10))}, "S S F*7 =closed F =open"},
		{
			"BEHAVIOUR 5: failures at whatever volume",
			options{breaker.Failures(5, breaker.Within(time.Minute))},
			"S*200 F S*200 F S*200 F S*200 F S*200 =closed F =open",
		},
		{"BEHAVIOUR 6: the oldest leaves", options{breaker.FailureRate(.6, breaker.Last(4))}, "F F S S F =closed F =closed F =open"},
		{"BEHAVIOUR 7: a success decides", half20s, "F F F S =closed S =open"},
		{"BEHAVIOUR 7: one a second", half20s, "S +1s S +1s S +1s F +1s F =closed +1s F =open"},
		{
			"BEHAVIOUR 8: still in the window",
			options{breaker.Failures(2, breaker.Within(10*time.Second))},
			"+900ms F +9s =closed F =open",
		},
		{
			"BEHAVIOUR 8: no more in the window",
			options{breaker.Failures(2, breaker.Within(10*time.Second))},
			"+900ms F +9100ms F =closed",
		},
		{
			"BEHAVIOUR 8: silence empties it",
			options{breaker.Failures(2, breaker.Within(10*time.Second))},
			"F +10s F =closed +10000s F =closed F =open",
		},
		{
			"BEHAVIOUR 9: the call that lands in a new bucket counts",
			options{breaker.FailureRate(.5, breaker.Within(10*time.Second)), breaker.MinimumCalls(2)},
			"F +1s S =open",
		},
		{"BEHAVIOUR 10: exactly the limit is not slow", options{slow}, "S/2s*10 =closed"},
		{"BEHAVIOUR 10: five slow of ten", options{slow}, "S/2000000001ns*5 S*4 =closed S =open"},
		{"BEHAVIOUR 10: slow failures count", options{slow}, "F/3s*5 S*4 =closed S =open"},
		{
			"BEHAVIOUR 10: slow failures count in both rates",
			options{slow, breaker.FailureRate(.6, breaker.Last(10))},
			"F/3s*5 S*4 =closed S =open",
		},
		{"BEHAVIOUR 11: slow is failure", options{breaker.SlowIsFailure(2 * time.Second)}, "S/12s*4 =closed S/12s =open"},
		{"BEHAVIOUR 12: ignored, run", options{ignoring}, "F*4 I*1000 =closed F =open"},
		{"BEHAVIOUR 12: ignored, rate", options{ignoring, half}, "F*9 I*1000 =closed S =open"},
		{"BEHAVIOUR 12: refused inside", nil, "F*4 R*1000 =closed F =open"},
		{
			"the first of several conditions trips",
			options{breaker.ConsecutiveFailures(3), breaker.Failures(4, breaker.Last(100))},
			"F S F S F S =closed F =open",
		},
		{"windows start empty when the circuit closes", options{half}, "F*10 =open +30s S =closed F*9 =closed F =open"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { newCircuit(tt.options...).play(t, tt.script) })
	}
}

func TestOpenAndHalfOpen(t *testing.T) {
	type options = []breaker.Option
	first := breaker.ConsecutiveFailures(1)
	tests := []struct {
		name    string
		options options
		script  string
	}{
		{"BEHAVIOUR 13: refusals are no outcomes", options{first}, "F X*500 +30s S =closed S =closed"},
		{"BEHAVIOUR 15: the exact nanosecond", options{first}, "F +29999999999ns =open X +1ns =half-open S =closed"},
		{
			"BEHAVIOUR 16: timeline",
			options{breaker.ConsecutiveFailures(3), breaker.OpenFor(2 * time.Second)},
			"F +400ms F +400ms F =open +400ms X +400ms X +400ms X +400ms X +400ms F =open " +
				"+400ms X +400ms X +400ms X +400ms X +400ms S =closed +400ms S +400ms S +400ms S",
		},
		{
			"BEHAVIOUR 17: doubling",
			options{first, breaker.OpenBackoff(30*time.Second, 2*time.Minute)},
			"F +29s X +1s F +59s X +1s F +119s X +1s F +119s X +1s S =closed F +29s X +1s =half-open",
		},
		{"BEHAVIOUR 18: three close it", options{first, breaker.Trials(3, 3)}, "F +30s S S =half-open S =closed F =open"},
		{"BEHAVIOUR 18: one failure opens it", options{first, breaker.Trials(3, 3)}, "F +30s S =half-open F =open X"},
		{
			"BEHAVIOUR 19: tolerated",
			options{first, breaker.Trials(5, 3), breaker.TolerateTrialFailures(2)},
			"F +30s F F S S =half-open S =closed",
		},
		{
			"BEHAVIOUR 19: no more than tolerated",
			options{first, breaker.Trials(5, 3), breaker.TolerateTrialFailures(2)},
			"F +30s F F =half-open F =open",
		},
		{"BEHAVIOUR 21: a refused trial", options{first}, "F +30s R*3 =half-open S =closed"},
		{"BEHAVIOUR 21: an ignored trial", options{first, ignoring}, "F +30s I*3 =half-open S =closed"},
		{
			"BEHAVIOUR 26: a slow trial",
			options{first, breaker.SlowCalls(2*time.Second, .5, breaker.Last(10))},
			"F +30s S/2s =closed F +30s S/3s =open",
		},
		{
			"a trial that is slow by SlowIsFailure",
			options{first, breaker.SlowIsFailure(2 * time.Second)},
			"F +30s S/3s =open",
		},
		{"reset closes an open circuit", options{first}, "F X reset =closed S F =open"},
		{
			"reset starts the count of openings anew",
			options{first, breaker.OpenBackoff(time.Second, time.Hour)},
			"F +1s F +1s X reset F +1s =half-open",
		},
		{"idle for years", options{first}, "F +80000h =half-open S =closed"},
		{"no open period", options{first, breaker.OpenForFunc(func(int) time.Duration { return -1 })}, "F =half-open F =half-open S =closed"},
		{"a period to the end of time", options{first, breaker.OpenFor(1<<63 - 1), breaker.TrialTimeout(1<<63 - 1)}, "+1h F +80000h X"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { newCircuit(tt.options...).play(t, tt.script) })
	}
}

func TestRefusal(t *testing.T) {
	// BEHAVIOUR 15: what a refusal tells.
	c := newCircuit(breaker.ConsecutiveFailures(1))
	c.play(t, "F +29999ms")
	_, err := c.call(t.Context(), c.returning(nil, nil, 0))
	refusal, ok := errors.AsType[*breaker.CircuitOpenError](err)
	if !ok || *refusal != (breaker.CircuitOpenError{Name: "payments", State: breaker.Open, RetryIn: time.Millisecond}) {
		t.Errorf("refusal %+v", refusal)
	}
	if wait, ok := policy.RetryAfter(err); wait != time.Millisecond || !ok {
		t.Errorf("RetryAfter %v, %t, want 1ms", wait, ok)
	}
	if s := c.Stats(); s.RetryIn != time.Millisecond || s.Rejected != 1 || s.Openings != 1 {
		t.Errorf("stats %+v", s)
	}

	// Half-open with all trials taken: what is left of the oldest trial's timeout.
	c.play(t, "+1ms")
	done, err := c.Allow()
	if err != nil {
		t.Fatal(err)
	}
	c.play(t, "+10s X")
	_, err = c.Allow()
	refusal, _ = errors.AsType[*breaker.CircuitOpenError](err)
	if refusal.State != breaker.HalfOpen || refusal.RetryIn != 20*time.Second {
		t.Errorf("refusal %+v, want half-open, 20s", refusal)
	}
	done(policy.Success)
	c.play(t, "=closed")
}

// BEHAVIOUR 14: of five running calls that fail, one trips the circuit.
func TestOneTransition(t *testing.T) {
	c := newCircuit(breaker.ConsecutiveFailures(1))
	events := policytest.Record(c)
	var done [5]func(policy.Outcome)
	for i := range done {
		done[i], _ = c.Allow()
	}
	for i := range done {
		c.clock.Advance(time.Second)
		done[i](policy.Failure)
	}
	if len(c.moves) != 1 || len(events.Events()) != 1 {
		t.Fatalf("transitions %v, events %v, want one each", c.moves, events.Events())
	}
	if s := c.Stats(); s.Late != 4 || s.RetryIn != 26*time.Second {
		t.Errorf("stats %+v, want 4 late, 26s left of the open period", s)
	}
}

// BEHAVIOUR 24: a result of a call that was admitted before a transition moves nothing.
func TestLateResults(t *testing.T) {
	for _, outcome := range []policy.Outcome{policy.Success, policy.Failure, policy.Ignored} {
		t.Run(outcome.String(), func(t *testing.T) {
			c := newCircuit(breaker.ConsecutiveFailures(1), breaker.OpenFor(4*time.Second))
			done, _ := c.Allow()
			c.play(t, "F +5s =half-open")
			done(outcome)
			done(outcome) // idempotent
			c.play(t, "=half-open S =closed")
			if s := c.Stats(); s.Late != 1 {
				t.Errorf("late %d, want 1", s.Late)
			}
		})
	}
}

// BEHAVIOUR 8: reading Stats alone moves the window.
func TestStats(t *testing.T) {
	c := newCircuit(breaker.FailureRate(.9, breaker.Within(10*time.Second)), breaker.MinimumCalls(3))
	c.play(t, "F +100ms S")
	if s := c.Stats(); s.Calls != 2 || s.Failures != 1 || s.FailureRate != -1 || s.SlowRate != -1 {
		t.Errorf("below the minimum: %+v", s)
	}
	c.play(t, "+100ms S +1s S")
	if s := c.Stats(); s.Calls != 4 || s.FailureRate != .25 {
		t.Errorf("four calls: %+v", s)
	}
	c.play(t, "+8799999999ns") // to +9.999999999s
	if s := c.Stats(); s.Calls != 4 {
		t.Errorf("at +9.999999999s: %+v", s)
	}
	c.play(t, "+1ns")
	if s := c.Stats(); s.Calls != 1 || s.Failures != 0 {
		t.Errorf("at +10s: %+v", s)
	}
	c.play(t, "+10000s")
	if s := c.Stats(); s.Calls != 0 {
		t.Errorf("after silence: %+v", s)
	}
	if s := newCircuit().Stats(); s.Calls != 0 || s.FailureRate != -1 {
		t.Errorf("without a window: %+v", s)
	}
}

// OpenForFunc is asked ahead, for every opening in a row, and never under a lock.
func TestOpenForFunc(t *testing.T) {
	var asked []int
	var b *breaker.Breaker
	c := newCircuit(breaker.ConsecutiveFailures(1), breaker.OpenForFunc(func(openings int) time.Duration {
		asked = append(asked, openings)
		if b != nil {
			b.State()
		}
		return time.Duration(openings) * time.Second
	}))
	b = c.Breaker
	c.play(t, "F +1s F +1s X +1s F +2s X +1s S =closed F +1s =half-open F +2s =half-open")
	if got := fmt.Sprint(asked); got != "[1 2 3 4 1 2 3]" {
		t.Errorf("asked for %s", got)
	}
	c.Isolate()()
	c.play(t, "F +1s =half-open")
}

func TestDoneContextIsNotAdmitted(t *testing.T) {
	c := newCircuit(breaker.ConsecutiveFailures(1))
	c.play(t, "F +30s")
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := c.call(ctx, policytest.Script(policytest.Panic("ran")))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	c.play(t, "=half-open S =closed") // the trial's place was not taken
}

func TestEvents(t *testing.T) {
	c := newCircuit(breaker.ConsecutiveFailures(1))
	events := policytest.Record(c)
	c.play(t, "F X +30s S")
	want := []policy.Kind{policy.CircuitChanged, policy.CircuitRejected, policy.CircuitChanged, policy.CircuitChanged}
	got := events.Events()
	if fmt.Sprint(events.Kinds()) != fmt.Sprint(want) {
		t.Fatalf("events %v, want %v", events.Kinds(), want)
	}
	if e := got[0]; e.From != "closed" || e.To != "open" || e.Reason != "failures in a row: 1" || e.Delay != 30*time.Second {
		t.Errorf("opening told as %+v", e)
	}
	if e := got[1]; e.Policy != "breaker" || e.Name != "payments" || !errors.Is(e.Err, breaker.ErrOpen) || e.Delay != 30*time.Second {
		t.Errorf("refusal told as %+v", e)
	}
}
