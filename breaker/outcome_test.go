package breaker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policy"
)

func TestWhatCounts(t *testing.T) {
	canceled := func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	expired := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithDeadline(ctx, time.Now().Add(-time.Hour))
	}
	tests := []struct {
		name    string
		options []breaker.Option
		end     func(context.Context) (context.Context, context.CancelFunc) // of the ctx, in mid-call
		err     error
		want    breaker.State
	}{
		{"BEHAVIOUR 28: the caller cancels", nil, canceled, context.Canceled, breaker.Closed},
		{"BEHAVIOUR 28: a cancellation that is not the caller's", nil, nil, fmt.Errorf("inner: %w", context.Canceled), breaker.Open},
		{"BEHAVIOUR 29: an inner timeout", nil, nil, context.DeadlineExceeded, breaker.Open},
		{"BEHAVIOUR 29: the caller's deadline", nil, expired, context.DeadlineExceeded, breaker.Closed},
		{
			"BEHAVIOUR 29: the caller's deadline, counted",
			[]breaker.Option{breaker.CountDeadlines()},
			expired, context.DeadlineExceeded, breaker.Open,
		},
		{"cancellations are never counted", []breaker.Option{breaker.CountDeadlines()}, canceled, context.Canceled, breaker.Closed},
		{
			"whatever Classify says",
			[]breaker.Option{breaker.Classify(func(any, error) policy.Outcome { return policy.Failure })},
			canceled, errDown, breaker.Closed,
		},
		{
			"a success counts although the caller has left",
			[]breaker.Option{breaker.Classify(func(any, error) policy.Outcome { return policy.Failure })},
			canceled, nil, breaker.Open,
		},
		{
			"refused inside, whatever Classify says",
			[]breaker.Option{breaker.Classify(func(any, error) policy.Outcome { return policy.Failure })},
			nil, policy.ErrRejected, breaker.Closed,
		},
		{
			"0 is what the error says",
			[]breaker.Option{breaker.Classify(func(any, error) policy.Outcome { return 0 })},
			nil, errDown, breaker.Open,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCircuit(append([]breaker.Option{breaker.ConsecutiveFailures(24)}, tt.options...)...)
			for range 24 {
				ctx := &midCall{Context: t.Context()}
				_, err := c.call(ctx, policy.CallFunc(func(context.Context) (any, error) {
					if tt.end != nil {
						ended, cancel := tt.end(ctx.Context)
						cancel()
						ctx.Context = ended
					}
					return nil, tt.err
				}))
				if err != tt.err {
					t.Fatalf("error %v, want the call's own", err)
				}
			}
			if got := c.State(); got != tt.want {
				t.Errorf("state %s, want %s", got, tt.want)
			}
		})
	}
}

// midCall is a ctx whose end is decided while the call runs.
type midCall struct{ context.Context }

// BEHAVIOUR 30: a call whose caller leaves after it was slow is slow, and nothing else.
func TestSlowAndLeft(t *testing.T) {
	c := newCircuit(
		breaker.SlowCalls(2*time.Second, 1, breaker.Last(2)),
		breaker.FailureRate(1, breaker.Last(10)), breaker.MinimumCalls(1), breaker.ConsecutiveFailures(2),
	)
	leave := func(after time.Duration) {
		ctx, cancel := context.WithCancel(t.Context())
		c.call(ctx, policy.CallFunc(func(context.Context) (any, error) {
			c.clock.Advance(after)
			cancel()
			return nil, ctx.Err()
		}))
	}
	c.play(t, "S")
	leave(2 * time.Second)
	if s := c.Stats(); s.Calls != 1 || s.SlowCalls != 0 {
		t.Errorf("after a quick one: %+v", s)
	}
	leave(3 * time.Second)
	if s := c.Stats(); s.Calls != 1 || s.Failures != 0 || s.ConsecutiveFailures != 0 || s.SlowCalls != 1 || s.SlowRate != .5 {
		t.Errorf("after a slow one: %+v", s)
	}
	leave(3 * time.Second)
	c.play(t, "=open")
}

// judged is a call with a judgement of its own.
type judged struct {
	policy.CallFunc
	outcome policy.Outcome
}

func (j judged) Outcome(any, error) policy.Outcome      { return j.outcome }
func (j judged) Again(any, error) (time.Duration, bool) { return 0, false }

// BEHAVIOUR 31: values are classified, and returned untouched.
func TestClassify(t *testing.T) {
	byStatus := breaker.Classify(policy.Classify(func(status int, err error) policy.Outcome {
		switch {
		case status == 404:
			return policy.Ignored
		case status >= 500:
			return policy.Failure
		}
		return 0
	}))
	tests := []struct {
		name     string
		options  []breaker.Option
		call     policy.Call
		failures int
		calls    int
	}{
		{"404 ignored", []breaker.Option{byStatus}, status(404), 0, 0},
		{"503 failure", []breaker.Option{byStatus}, status(503), 1, 1},
		{"200 success", []breaker.Option{byStatus}, status(200), 0, 1},
		{"judge: failure", nil, judged{status(200), policy.Failure}, 1, 1},
		{"judge: ignored", nil, judged{status(200), policy.Ignored}, 0, 0},
		{"judge: no say", nil, judged{status(200), 0}, 0, 1},
		{"the classifier before the judge", []breaker.Option{byStatus}, judged{status(200), policy.Failure}, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCircuit(append(tt.options, breaker.FailureRate(1, breaker.Last(10)))...)
			value, err := c.call(t.Context(), tt.call)
			if want, _ := tt.call.Invoke(t.Context()); value != want || err != nil {
				t.Errorf("got %v, %v, want %v", value, err, want)
			}
			if s := c.Stats(); s.Calls != tt.calls || s.Failures != tt.failures {
				t.Errorf("counted %d of %d, want %d of %d", s.Failures, s.Calls, tt.failures, tt.calls)
			}
		})
	}
}

func status(code int) policy.CallFunc {
	return func(context.Context) (any, error) { return code, nil }
}
