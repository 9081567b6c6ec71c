package retry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/retry"
)

// asking is an error of the other side, which wants us to wait.
type asking time.Duration

func (a asking) Error() string                     { return "busy" }
func (a asking) RetryAfter() (time.Duration, bool) { return time.Duration(a), true }

// unknowing has the method, but does not know.
type unknowing struct{ error }

func (unknowing) RetryAfter() (time.Duration, bool) { return time.Hour, false }

func TestWaits(t *testing.T) {
	const ms, second = time.Millisecond, time.Second
	none := retry.Jitter(retry.None)
	refused := &retry.ExhaustedError{Attempts: 1, Cause: &open{in: 30 * second}}
	asked := &retry.ExhaustedError{Attempts: 1, Last: asking(30 * second), Cause: &open{in: 20 * second}}
	literal := func() backoff.BackOff {
		return &backoff.ExponentialBackOff{
			InitialInterval: second, Multiplier: 3, MaxInterval: 5 * second, MaxElapsedTime: time.Hour,
			Stop: backoff.Stop, Clock: backoff.SystemClock,
		}
	}
	negative := func() backoff.BackOff { return backoff.NewConstantBackOff(-2) }

	tests := []struct {
		name string
		opts []retry.Option
		err  error
		want []time.Duration
		ends error // the verdict's cause
	}{
		{
			"BEHAVIOUR 34: exponential",
			[]retry.Option{retry.Exponential(100*ms, second), none, retry.Attempts(7)},
			errCall,
			[]time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, second, second},
			retry.ErrAttempts,
		},
		{"constant", []retry.Option{retry.Constant(second)}, errCall, []time.Duration{second, second}, retry.ErrAttempts},
		{"no wait", []retry.Option{retry.Constant(0)}, errCall, []time.Duration{0, 0}, retry.ErrAttempts},
		{
			"decorrelated leaves a constant",
			[]retry.Option{retry.Constant(second), retry.Jitter(retry.Decorrelated)},
			errCall,
			[]time.Duration{second, second},
			retry.ErrAttempts,
		},
		{
			"the last strategy wins, and brings its jitter",
			[]retry.Option{retry.Backoff(literal), retry.Exponential(ms, ms), retry.Constant(second)},
			errCall,
			[]time.Duration{second, second},
			retry.ErrAttempts,
		},
		{
			"a strategy of backoff's, as it is",
			[]retry.Option{retry.Backoff(literal), retry.Jitter(retry.Full), retry.Attempts(4)},
			errCall,
			[]time.Duration{second, 3 * second, 5 * second},
			retry.ErrAttempts,
		},
		{"a negative backoff", []retry.Option{retry.Backoff(negative)}, errCall, []time.Duration{0, 0}, retry.ErrAttempts},

		{
			"BEHAVIOUR 41: asked for more",
			[]retry.Option{retry.Constant(2 * second)},
			asking(30 * second),
			[]time.Duration{30 * second, 30 * second},
			retry.ErrAttempts,
		},
		{
			"asked for less",
			[]retry.Option{retry.Constant(2 * second)},
			fmt.Errorf("wrapped: %w", asking(second)),
			[]time.Duration{2 * second, 2 * second},
			retry.ErrAttempts,
		},
		{"BEHAVIOUR 41: asked for 2h", []retry.Option{retry.Constant(0)}, asking(2 * time.Hour), nil, retry.ErrRetryAfter},
		{
			"asked for all that is allowed",
			[]retry.Option{retry.Constant(0)},
			asking(time.Minute),
			[]time.Duration{time.Minute, time.Minute},
			retry.ErrAttempts,
		},
		{"MaxRetryAfter(0)", []retry.Option{retry.MaxRetryAfter(0)}, asking(1), nil, retry.ErrRetryAfter},
		{
			"BEHAVIOUR 41: negative",
			[]retry.Option{retry.Constant(second)},
			asking(math.MinInt64),
			[]time.Duration{second, second},
			retry.ErrAttempts,
		},
		{
			"not known",
			[]retry.Option{retry.Constant(second)},
			unknowing{errCall},
			[]time.Duration{second, second},
			retry.ErrAttempts,
		},
		{
			"a refusal inside an inner verdict",
			[]retry.Option{retry.Constant(second)},
			refused,
			[]time.Duration{second, second},
			retry.ErrAttempts,
		},
		{
			"the other side inside an inner verdict",
			[]retry.Option{retry.Constant(second)},
			asked,
			[]time.Duration{30 * second, 30 * second},
			retry.ErrAttempts,
		},

		{
			"MaxElapsed",
			[]retry.Option{retry.Constant(2 * second), retry.MaxElapsed(5 * second), retry.Attempts(9)},
			errCall,
			[]time.Duration{2 * second, 2 * second},
			retry.ErrElapsed,
		},
		{
			"MaxElapsed reached exactly",
			[]retry.Option{retry.Constant(2 * second), retry.MaxElapsed(4 * second), retry.Attempts(9)},
			errCall,
			[]time.Duration{2 * second, 2 * second},
			retry.ErrElapsed,
		},
		{
			"the longest there is",
			[]retry.Option{retry.Constant(math.MaxInt64), retry.MaxElapsed(math.MaxInt64 - 1)},
			errCall, nil, retry.ErrElapsed,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []time.Duration
				opts := append(tt.opts, retry.OnRetry(func(_ context.Context, a retry.Attempt) { got = append(got, a.Delay) }))
				begin := time.Now()
				_, err := retry.New(opts...).Wrap(policy.Invoke)(t.Context(), returning(nil, tt.err))
				if !slices.Equal(got, tt.want) {
					t.Errorf("waits %v, want %v", got, tt.want)
				}
				var sum time.Duration
				for _, d := range tt.want {
					sum += d
				}
				if took := time.Since(begin); took != sum {
					t.Errorf("took %v, want %v", took, sum)
				}
				checkVerdict(t, err, verdict{len(tt.want) + 1, tt.ends, tt.err})
			})
		})
	}
}

// Elapsed counts from the beginning of the first attempt, and knows no wall clock.
func TestElapsed(t *testing.T) {
	clock := policytest.NewClock(time.Unix(0, 0))
	var told []time.Duration
	r := retry.New(retry.Clock(clock), retry.Constant(0), retry.MaxElapsed(6*time.Second), retry.Attempts(9),
		retry.OnRetry(func(_ context.Context, a retry.Attempt) { told = append(told, a.Elapsed) }))
	call := func(context.Context, policy.Call) (any, error) {
		clock.Advance(3 * time.Second)
		clock.Set(clock.Now().Add(-time.Hour))
		return nil, errCall
	}
	_, err := r.Wrap(call)(t.Context(), nil)
	checkVerdict(t, err, verdict{3, retry.ErrElapsed, errCall})
	if e, _ := errors.AsType[*retry.ExhaustedError](err); e.Elapsed != 9*time.Second {
		t.Errorf("elapsed %v, want 9s", e.Elapsed)
	}
	if !slices.Equal(told, []time.Duration{3 * time.Second, 6 * time.Second}) {
		t.Errorf("told %v, want 3s, 6s", told)
	}
}

// BEHAVIOUR 38: a wait that the deadline would cut is not begun.
func TestDeadline(t *testing.T) {
	tests := []struct {
		name     string
		wait     time.Duration
		value    any
		err      error
		attempts int
	}{
		{"longer", 10 * time.Minute, nil, errCall, 1},
		{"equal", 5 * time.Minute, nil, errCall, 1},
		{"shorter", 5*time.Minute - 1, nil, errCall, 2},
		{"a value stays", 10 * time.Minute, 503, nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				r := retry.New(retry.Constant(tt.wait), retry.If(failingStatus))
				call, begin := keeper(answer{tt.value, tt.err}), time.Now()
				value, err := r.Wrap(policy.Invoke)(ctx, call)
				if took, want := time.Since(begin), time.Duration(tt.attempts-1)*tt.wait; took != want || value != tt.value {
					t.Errorf("value %v after %v, want %v after %v", value, took, tt.value, want)
				}
				if tt.err == nil {
					if err != nil || len(call.discarded) > 0 {
						t.Errorf("error %v, discarded %v, want the value as it is", err, call.discarded)
					}
					return
				}
				checkVerdict(t, err, verdict{tt.attempts, context.DeadlineExceeded, errCall})
			})
		})
	}
}

// The deadline is compared with the policy's own clock.
func TestDeadlineOnAClock(t *testing.T) {
	clock := policytest.NewClock(time.Unix(0, 0))
	ctx, cancel := clock.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := retry.New(retry.Clock(clock), retry.Constant(time.Minute)).Wrap(policy.Invoke)(ctx, returning(nil, errCall))
	checkVerdict(t, err, verdict{1, context.DeadlineExceeded, errCall})
}

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

// BEHAVIOUR 40: a timeout per attempt is a failure like any other.
func TestTimeoutPerAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timeout := func(ctx context.Context, call policy.Call) (any, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return policy.Invoke(ctx, call)
		}
		call, begin := policytest.Script(policytest.Block()), time.Now()
		_, err := retry.New(retry.Attempts(4), retry.Constant(time.Second)).Wrap(timeout)(t.Context(), call)
		checkVerdict(t, err, verdict{4, retry.ErrAttempts, context.DeadlineExceeded})
		if took := time.Since(begin); call.Calls() != 4 || took != 7*time.Second {
			t.Errorf("%d calls in %v, want 4 in 7s", call.Calls(), took)
		}
	})
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

func TestOnRetrySeesTheAttempt(t *testing.T) {
	call := keeper(give(500), fail(errCall), give(200))
	var got []retry.Attempt
	retry.New(retry.Constant(0), retry.If(failingStatus), retry.OnRetry(func(_ context.Context, a retry.Attempt) {
		if len(call.discarded) >= a.Number {
			t.Errorf("attempt %d: its value is discarded already", a.Number)
		}
		a.Elapsed = 0
		got = append(got, a)
	})).Wrap(policy.Invoke)(t.Context(), call)
	want := []retry.Attempt{{Number: 1, Value: 500}, {Number: 2, Err: errCall}}
	if !slices.Equal(got, want) {
		t.Errorf("told %+v, want %+v", got, want)
	}
}
