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
