package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/retry"
)

// BEHAVIOUR 39, and the same at every other step: nothing is run once ctx is done.
func TestCancelAtEveryStep(t *testing.T) {
	cause := errors.New("the caller left")
	tests := []struct {
		name  string
		step  string
		calls int
		bare  bool // the call's own error, of a first attempt
	}{
		{"before", "before", 0, false},
		{"in the first attempt", "attempt 1", 1, true},
		{"while told of it", string(policy.AttemptDone), 1, false},
		{"while told of the wait", string(policy.RetryScheduled), 1, false},
		{"in OnRetry", "OnRetry", 1, false},
		{"while discarding", "Discard", 1, false},
		{"BEHAVIOUR 39: in the wait", "wait", 1, false},
		{"in the second attempt", "attempt 2", 2, false},
	}
	for _, tt := range tests {
		for _, delay := range []time.Duration{0, time.Second} {
			if tt.step == "wait" && delay == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s, %v", tt.name, delay), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancelCause(t.Context())
					at := func(step string) {
						if step == tt.step {
							cancel(cause)
						}
					}
					r := retry.New(retry.Constant(delay), retry.OnRetry(func(context.Context, retry.Attempt) { at("OnRetry") }))
					r.Subscribe(policy.ObserverFunc(func(_ context.Context, e policy.Event) { at(string(e.Kind)) }))
					call := &stepping{at: at}
					at("before")
					if tt.step == "wait" {
						time.AfterFunc(50*time.Millisecond, func() { at("wait") })
					}
					begin := time.Now()
					value, err := r.Wrap(policy.Invoke)(ctx, call)

					if took := time.Since(begin); tt.step == "wait" && took != 50*time.Millisecond {
						t.Errorf("took %v, want 50ms", took)
					}
					if call.calls != tt.calls {
						t.Errorf("%d calls, want %d", call.calls, tt.calls)
					}
					if tt.bare {
						if err != errCall {
							t.Errorf("error %v, want the call's as it is", err)
						}
					} else if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || tt.calls > 0 && !errors.Is(err, errCall) {
						t.Errorf("error %v, want one that Is all of its causes", err)
					}
					call.account(t, value)
				})
			})
		}
	}
}

// A wait that ctx ends leaves no timer behind.
func TestCutWaitLeavesNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		clock := policytest.NewClock(time.Unix(0, 0))
		handler := retry.New(retry.Clock(clock), retry.Constant(time.Hour)).Wrap(policy.Invoke)
		ended := make(chan error, 1)
		go func() {
			_, err := handler(ctx, returning(nil, errCall))
			ended <- err
		}()
		synctest.Wait()
		if n := clock.Pending(); n != 1 {
			t.Fatalf("%d timers during the wait, want 1", n)
		}
		clock.Advance(time.Hour) // into the second wait
		synctest.Wait()
		cancel()
		checkVerdict(t, <-ended, verdict{2, context.Canceled, errCall})
		if n := clock.Pending(); n != 0 {
			t.Errorf("%d timers left behind", n)
		}
	})
}

// stepping is a Keeper that returns its number beside an error, and tells its steps.
type stepping struct {
	at        func(step string)
	calls     int
	discarded []any
}

func (s *stepping) Invoke(context.Context) (any, error) {
	s.calls++
	s.at(fmt.Sprint("attempt ", s.calls))
	return s.calls, errCall
}

func (s *stepping) Keep(any, func()) bool { return false }

func (s *stepping) Discard(value any) {
	s.discarded = append(s.discarded, value)
	s.at("Discard")
}

// account checks that each value was returned or discarded, once.
func (s *stepping) account(t *testing.T, returned any) {
	t.Helper()
	all := slices.Clone(s.discarded)
	if returned != nil {
		all = append(all, returned)
	}
	for i := range s.calls {
		if !slices.Contains(all, any(i+1)) {
			t.Errorf("value %d was neither returned nor discarded", i+1)
		}
	}
	if len(all) > s.calls {
		t.Errorf("discarded %v, returned %v: more than %d values", s.discarded, returned, s.calls)
	}
}

// A done ctx ends the wait without a value, also where there is no error to tell.
func TestValueCutInTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		call := keeper(give(503))
		value, err := retry.New(retry.If(failingStatus), retry.Constant(time.Minute)).Wrap(policy.Invoke)(ctx, call)
		checkVerdict(t, err, verdict{1, context.Canceled, nil})
		if value != nil || !slices.Equal(call.discarded, []any{503}) {
			t.Errorf("value %v, discarded %v, want 503 discarded", value, call.discarded)
		}
	})
}
