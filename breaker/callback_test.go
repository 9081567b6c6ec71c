package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

// BEHAVIOUR 27: a callback may do anything.
func TestCallbacks(t *testing.T) {
	var b *breaker.Breaker
	var told []string
	clock := policytest.NewClock(time.Time{})
	b = breaker.New("payments", breaker.Clock(clock), breaker.ConsecutiveFailures(1), breaker.OnStateChange(func(m breaker.Transition) {
		told = append(told, fmt.Sprintf("%d %s", m.Seq, m.To))
		b.Stats()
		if m.To == breaker.Open {
			b.Isolate()() // adds two transitions, told after this one
			b.State()
			panic(errDown)
		}
	}))
	events := policytest.Record(b)
	func() {
		defer func() {
			if got := recover(); got != errDown {
				t.Errorf("recovered %v, want the callback's panic", got)
			}
		}()
		b.Wrap(policy.Invoke)(t.Context(), policytest.Script(policytest.Fail(errors.New("call"))))
	}()
	if got := strings.Join(told, ", "); got != "1 open, 2 isolated, 3 closed" {
		t.Errorf("told %s", got)
	}
	if n := len(events.Events()); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
	if s := b.State(); s != breaker.Closed {
		t.Errorf("state %s, want closed", s)
	}

	defer func() {
		if got := recover(); got != "the call's" {
			t.Errorf("recovered %v, want the call's panic to win", got)
		}
	}()
	b.Wrap(policy.Invoke)(t.Context(), policytest.Script(policytest.Panic("the call's")))
}

// A classifier that panics neither pins a trial nor hides the outcome.
func TestClassifierPanics(t *testing.T) {
	c := newCircuit(breaker.ConsecutiveFailures(1), breaker.Classify(func(any, error) policy.Outcome { panic(errDown) }))
	for range 2 {
		func() {
			defer func() { recover() }()
			c.call(t.Context(), c.returning(nil, errors.New("call"), 0))
		}()
		c.play(t, "=open +30s =half-open")
	}
}

// A callback may settle once more what is just being settled, on any goroutine.
func TestSettledAgainInCallback(t *testing.T) {
	for name, play := range map[string]func(b *breaker.Breaker, again *func()){
		"done": func(b *breaker.Breaker, again *func()) {
			done, _ := b.Allow()
			*again = func() { done(policy.Success) }
			done(policy.Failure)
		},
		"release": func(b *breaker.Breaker, again *func()) {
			release := b.Isolate()
			*again = release
			release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			again, told := func() {}, 0
			b := breaker.New("payments", breaker.ConsecutiveFailures(1), breaker.OnStateChange(func(breaker.Transition) {
				told++
				again()
				other := make(chan struct{})
				go func() {
					defer close(other)
					again()
				}()
				<-other
			}))
			play(b, &again)
			if s := b.Stats(); told > 2 || s.Late != 0 {
				t.Errorf("%d transitions, %d late results", told, s.Late)
			}
		})
	}
}

// A call that a callback keeps from running gives its place back: the callback is told
// of the very transition that admits the call.
func TestCallbackEndsAdmission(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic(errDown) }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			c := newCircuit(breaker.ConsecutiveFailures(1))
			c.play(t, "F +30s")
			cancel := c.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) { end() }))
			ended := make(chan any)
			go func() {
				defer close(ended)
				defer func() { ended <- recover() }()
				c.call(t.Context(), policytest.Script(policytest.Return("ran")))
			}()
			if got := <-ended; name == "panic" && got != errDown {
				t.Errorf("recovered %v, want the callback's panic", got)
			}
			<-ended
			cancel()
			c.play(t, "=half-open S =closed")
		})
	}
}

// keeper is a call whose value owns something.
type keeper struct {
	policy.CallFunc
	discarded int
}

func (k *keeper) Keep(any, func()) bool { return true }
func (k *keeper) Discard(any)           { k.discarded++ }

// A value that a panic keeps from the caller is discarded.
func TestPanicDiscardsValue(t *testing.T) {
	for name, option := range map[string]breaker.Option{
		"classifier": breaker.Classify(func(any, error) policy.Outcome { panic(errDown) }),
		"callback":   breaker.OnStateChange(func(breaker.Transition) { panic(errDown) }),
	} {
		t.Run(name, func(t *testing.T) {
			b := breaker.New("payments", breaker.ConsecutiveFailures(1), option)
			call := &keeper{CallFunc: func(context.Context) (any, error) { return "partial", errors.New("call") }}
			defer func() {
				if got := recover(); got != errDown || call.discarded != 1 {
					t.Errorf("recovered %v, discarded %d times, want once", got, call.discarded)
				}
			}()
			b.Wrap(policy.Invoke)(t.Context(), call)
		})
	}
}
