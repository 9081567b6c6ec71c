package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

// BEHAVIOUR 18 and 20: a half-open circuit admits as many as it should, at once.
func TestTrialsAtOnce(t *testing.T) {
	for _, concurrent := range []int{1, 3} {
		t.Run(fmt.Sprint(concurrent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := breaker.New("payments", breaker.ConsecutiveFailures(1), breaker.Trials(concurrent, concurrent))
				handler := b.Wrap(policy.Invoke)
				handler(t.Context(), policytest.Script(policytest.Fail(errDown)))
				time.Sleep(30 * time.Second)

				var ran, refused atomic.Int32
				finish := make(chan struct{})
				for range 1000 {
					go func() {
						_, err := handler(t.Context(), policy.CallFunc(func(context.Context) (any, error) {
							ran.Add(1)
							<-finish
							return nil, nil
						}))
						if open, ok := errors.AsType[*breaker.CircuitOpenError](err); ok && open.State == breaker.HalfOpen {
							refused.Add(1)
						}
					}()
				}
				synctest.Wait()
				if int(ran.Load()) != concurrent || int(refused.Load()) != 1000-concurrent {
					t.Errorf("%d ran, %d refused", ran.Load(), refused.Load())
				}
				close(finish)
				synctest.Wait()
				if s := b.State(); s != breaker.Closed {
					t.Errorf("state %s, want closed", s)
				}
			})
		})
	}
}

// BEHAVIOUR 22: the circuit opens when a trial has hung for TrialTimeout, whoever looks
// when; a late reader is told of each transition with its own time.
func TestTrialHangs(t *testing.T) {
	c := newCircuit(breaker.ConsecutiveFailures(1), breaker.OpenFor(30*time.Second), breaker.TrialTimeout(10*time.Second))
	c.play(t, "F +30s")
	done, _ := c.Allow()
	c.play(t, "+9999999999ns =half-open X +1ns =open X")
	done(policy.Success)
	c.play(t, "=open +29999999999ns =open +1ns =half-open")
	if s := c.Stats(); s.Late != 1 {
		t.Errorf("late %d, want the trial's success", s.Late)
	}

	c.Allow()
	c.moves = nil
	c.play(t, "+1h =half-open")
	want := []string{"half-open → open at +1m20s", "open → half-open at +1m50s"}
	for i, m := range c.moves {
		if got := fmt.Sprintf("%s → %s at +%s", m.From, m.To, m.At.Sub(time.Unix(0, 0))); i >= len(want) || got != want[i] {
			t.Errorf("transition %d: %s, want %v", i, got, want)
		}
	}
	if len(c.moves) != len(want) {
		t.Errorf("%d transitions, want %d", len(c.moves), len(want))
	}
}

// BEHAVIOUR 23, and the same while closed: a call that panics or ends its goroutine has
// failed, and gives its place back.
func TestPanicAndGoexit(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic(errDown) },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCircuit(breaker.ConsecutiveFailures(1))
			run := func() (recovered any) {
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { recovered = recover() }()
					c.call(t.Context(), policy.CallFunc(func(context.Context) (any, error) { end(); return nil, nil }))
				}()
				<-ended
				return recovered
			}
			for range 3 { // closed, then as a trial
				if got := run(); name == "panic" && got != errDown {
					t.Errorf("recovered %v, want the call's own value", got)
				}
				c.play(t, "=open X +30s =half-open")
			}
			c.play(t, "S =closed")
		})
	}
}
