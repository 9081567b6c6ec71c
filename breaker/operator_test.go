package breaker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policy"
)

// BEHAVIOUR 25: isolations stack.
func TestIsolate(t *testing.T) {
	c := newCircuit(breaker.ConsecutiveFailures(1))
	c.play(t, "F =open")
	release1, release2 := c.Isolate(), c.Isolate()
	c.play(t, "=isolated X +1h =isolated")
	if s := c.Stats(); s.Openings != 1 {
		t.Errorf("openings %d, want those before the isolation", s.Openings)
	}
	c.play(t, "reset =isolated")
	if s := c.Stats(); s.Openings != 0 {
		t.Errorf("openings %d after Reset", s.Openings)
	}
	_, err := c.Allow()
	if _, known := policy.RetryAfter(err); known {
		t.Errorf("%v knows how long an isolation lasts", err)
	}
	release1()
	release1()
	c.play(t, "=isolated X")
	release2()
	c.play(t, "=closed S F =open")

	var got []string
	for i, m := range c.moves {
		got = append(got, m.To.String())
		if m.Seq != uint64(i+1) || m.Breaker != "payments" || m.Reason == "" {
			t.Errorf("transition %+v", m)
		}
	}
	if s := strings.Join(got, " "); s != "open isolated closed open" {
		t.Errorf("transitions %s", s)
	}
}

// BEHAVIOUR 26: the wall clock is no measure.
func TestWallClockSteps(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		c := newCircuit(breaker.ConsecutiveFailures(1))
		c.play(t, "F +10s")
		c.clock.Set(c.clock.Now().Add(step))
		c.play(t, "+19s X +1s =half-open S =closed")
	}
}

func TestReset(t *testing.T) {
	c := newCircuit(breaker.FailureRate(.5, breaker.Last(4)))
	c.play(t, "F F F")
	done, _ := c.Allow()
	c.Reset()
	done(policy.Failure)
	if s := c.Stats(); s.Calls != 0 || s.Late != 1 || len(c.moves) != 0 {
		t.Errorf("stats %+v, transitions %v", s, c.moves)
	}
}
