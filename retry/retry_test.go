package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/retry"
)

var (
	errCall  = errors.New("call failed")
	errOther = errors.New("call failed in another way")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return retry.New() })
}

// returning answers with value and err, for ever.
func returning(value any, err error) policy.CallFunc {
	return func(context.Context) (any, error) { return value, err }
}

// answers is a call that answers one after the other, the last for ever. It is a
// Keeper: every value is either returned or discarded, once.
type answers struct {
	list      []answer
	calls     int
	discarded []any
}

type answer struct {
	value any
	err   error
}

func (a *answers) Invoke(context.Context) (any, error) {
	a.calls++
	now := a.list[min(a.calls, len(a.list))-1]
	return now.value, now.err
}

func (a *answers) Keep(any, func()) bool { return false }
func (a *answers) Discard(value any)     { a.discarded = append(a.discarded, value) }

// judged is answers with a judgement of their own: statuses below 500 are final.
type judged struct{ answers }

func (j *judged) Outcome(value any, err error) policy.Outcome { return failingStatus(value, err) }

func (j *judged) Again(value any, err error) (time.Duration, bool) {
	status, ok := value.(int)
	return time.Duration(status) * time.Millisecond, ok && status >= 500
}

// failingStatus calls a value of 500 and more a Failure.
func failingStatus(value any, err error) policy.Outcome {
	if status, ok := value.(int); ok && err == nil && status >= 500 {
		return policy.Failure
	}
	return policy.DefaultClassifier(value, err)
}

func keeper(list ...answer) *answers { return &answers{list: list} }
func judge(list ...answer) *judged   { return &judged{answers{list: list}} }
func fail(err error) answer          { return answer{err: err} }
func give(value any) answer          { return answer{value: value} }

// open is a refusal as a breaker's.
type open struct{ in time.Duration }

func (*open) Error() string                       { return "circuit open" }
func (*open) Is(target error) bool                { return target == policy.ErrRejected }
func (o *open) RetryAfter() (time.Duration, bool) { return o.in, true }

// verdict is what an ExhaustedError must say.
type verdict struct {
	attempts    int
	cause, last error
}

func TestEnds(t *testing.T) {
	refused := &open{in: 2 * time.Hour}
	permanent := retry.Permanent(errCall)
	wrapped := fmt.Errorf("wrapped: %w", permanent)
	cenkalti := fmt.Errorf("wrapped: %w", backoff.Permanent(errCall))
	inner := &retry.ExhaustedError{Attempts: 1, Last: errCall, Cause: refused}
	ignoreOther := retry.If(policy.IgnoreErrors(errOther))
	statuses := retry.If(failingStatus)
	undecided := retry.If(func(any, error) policy.Outcome { return 0 })
	always := retry.If(func(any, error) policy.Outcome { return policy.Failure })
	stop := retry.Backoff(func() backoff.BackOff { return backoff.WithMaxRetries(&backoff.ZeroBackOff{}, 1) })

	tests := []struct {
		name      string
		opts      []retry.Option
		list      []answer
		calls     int
		value     any
		err       error    // as it is
		verdict   *verdict // instead of err
		discarded []any
	}{
		{"BEHAVIOUR 33: success", nil, []answer{give(1)}, 1, 1, nil, nil, nil},
		{"BEHAVIOUR 32: always failing", nil, []answer{fail(errCall)}, 3, nil, nil, &verdict{3, retry.ErrAttempts, errCall}, nil},
		{"success at last", nil, []answer{fail(errCall), fail(errCall), give(1)}, 3, 1, nil, nil, nil},
		{"last error", nil, []answer{fail(errCall), fail(errCall), fail(errOther)}, 3, nil, nil, &verdict{3, retry.ErrAttempts, errOther}, nil},
		{"Attempts(1)", []retry.Option{retry.Attempts(1)}, []answer{fail(errCall)}, 1, nil, nil, &verdict{1, retry.ErrAttempts, errCall}, nil},
		{"backoff stops", []retry.Option{stop}, []answer{fail(errCall)}, 2, nil, nil, &verdict{2, retry.ErrStopped, errCall}, nil},

		{"BEHAVIOUR 43: permanent", nil, []answer{fail(permanent)}, 1, nil, permanent, nil, nil},
		{"BEHAVIOUR 43: wrapped permanent", nil, []answer{fail(wrapped)}, 1, nil, wrapped, nil, nil},
		{"BEHAVIOUR 43: backoff's permanent", nil, []answer{fail(cenkalti)}, 1, nil, cenkalti, nil, nil},
		{"permanent, whatever If says", []retry.Option{always}, []answer{fail(wrapped)}, 1, nil, wrapped, nil, nil},
		{"permanent later", nil, []answer{fail(errOther), fail(permanent)}, 2, nil, nil, &verdict{2, nil, permanent}, nil},

		{"BEHAVIOUR 36: refused", nil, []answer{fail(refused)}, 1, nil, refused, nil, nil},
		{"refused, whatever If says", []retry.Option{always}, []answer{fail(refused)}, 1, nil, refused, nil, nil},
		{"BEHAVIOUR 36: refused later", nil, []answer{fail(errCall), fail(refused)}, 2, nil, nil, &verdict{1, refused, errCall}, nil},
		{"an inner retry's refusal", nil, []answer{fail(inner), give(1)}, 2, 1, nil, nil, nil},

		{"ignored", []retry.Option{ignoreOther}, []answer{fail(errOther)}, 1, nil, errOther, nil, nil},
		{"ignored later", []retry.Option{ignoreOther}, []answer{fail(errCall), fail(errOther)}, 2, nil, nil, &verdict{2, nil, errOther}, nil},
		{"If is undecided", []retry.Option{undecided}, []answer{fail(errCall), give(503)}, 2, 503, nil, nil, nil},

		{"BEHAVIOUR 46: values", []retry.Option{statuses}, []answer{give(500), give(501), give(503)}, 3, 503, nil, nil, []any{500, 501}},
		{"a value, then success", []retry.Option{statuses}, []answer{give(500), give(200)}, 2, 200, nil, nil, []any{500}},
		{"a value, then refused", []retry.Option{statuses}, []answer{give(500), fail(refused)}, 2, nil, nil, &verdict{1, refused, nil}, []any{500}},
		{"an error, a value, then refused", []retry.Option{statuses}, []answer{fail(errCall), give(500), fail(refused)}, 3, nil, nil, &verdict{2, refused, errCall}, []any{500}},
		{"values beside errors", nil, []answer{{1, errCall}, {2, errCall}, {3, errCall}}, 3, 3, nil, &verdict{3, retry.ErrAttempts, errCall}, []any{1, 2}},
		{"value beside a final error", nil, []answer{{1, permanent}}, 1, 1, permanent, nil, nil},
		{"value, Attempts(1)", []retry.Option{statuses, retry.Attempts(1)}, []answer{give(503)}, 1, 503, nil, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := keeper(tt.list...)
				value, err := retry.New(tt.opts...).Wrap(policy.Invoke)(t.Context(), call)
				if call.calls != tt.calls || value != tt.value {
					t.Errorf("value %v after %d calls, want %v after %d", value, call.calls, tt.value, tt.calls)
				}
				if !slices.Equal(call.discarded, tt.discarded) {
					t.Errorf("discarded %v, want %v", call.discarded, tt.discarded)
				}
				if tt.verdict == nil {
					if err != tt.err {
						t.Errorf("error %v, want %v as it is", err, tt.err)
					}
					return
				}
				checkVerdict(t, err, *tt.verdict)
			})
		})
	}
}

func checkVerdict(t *testing.T, err error, want verdict) {
	t.Helper()
	e, ok := errors.AsType[*retry.ExhaustedError](err)
	if !ok || !errors.Is(err, retry.ErrExhausted) {
		t.Fatalf("error %v, want an ExhaustedError", err)
	}
	if e.Attempts != want.attempts || e.Last != want.last || !errors.Is(e.Cause, want.cause) || (e.Cause == nil) != (want.cause == nil) {
		t.Errorf("verdict %+v, want %+v", e, want)
	}
	for _, part := range []error{want.cause, want.last} {
		if part != nil && !errors.Is(err, part) {
			t.Errorf("error %v, want one that Is %v", err, part)
		}
	}
	if policy.Rejected(err) {
		t.Errorf("error %v passes for a refusal, although an attempt ran", err)
	}
}

func TestJudge(t *testing.T) {
	never := retry.If(func(any, error) policy.Outcome { return policy.Success })
	always := retry.If(func(any, error) policy.Outcome { return policy.Failure })
	tests := []struct {
		name  string
		opts  []retry.Option
		list  []answer
		calls int
		took  time.Duration
	}{
		{"no", nil, []answer{fail(errCall)}, 1, 0},
		{"yes, for a value, with its wait", nil, []answer{give(500), give(200)}, 2, 500 * time.Millisecond},
		{"If alone is not enough", []retry.Option{always}, []answer{give(404)}, 1, 0},
		{"the Judge alone is not enough", []retry.Option{never}, []answer{give(503)}, 1, 0},
		{"both", []retry.Option{always}, []answer{give(503)}, 3, 2 * 503 * time.Millisecond},
		{"asks to wait too long", []retry.Option{retry.MaxRetryAfter(499 * time.Millisecond)}, []answer{give(500)}, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call, begin := judge(tt.list...), time.Now()
				handler := retry.New(append(tt.opts, retry.Constant(0))...).Wrap(policy.Invoke)
				handler(t.Context(), call)
				if took := time.Since(begin); call.calls != tt.calls || took != tt.took {
					t.Errorf("%d calls in %v, want %d in %v", call.calls, took, tt.calls, tt.took)
				}
			})
		})
	}
}

// BEHAVIOUR 37: a breaker inside ends the retries as soon as it is open.
func TestBreakerInside(t *testing.T) {
	failures, refused := 0, &open{in: time.Minute}
	breaker := func(ctx context.Context, call policy.Call) (any, error) {
		if failures == 3 {
			return nil, refused
		}
		failures++
		return policy.Invoke(ctx, call)
	}
	call := keeper(fail(errCall))
	_, err := retry.New(retry.Attempts(7), retry.Constant(0)).Wrap(breaker)(t.Context(), call)
	checkVerdict(t, err, verdict{3, refused, errCall})
	if call.calls != 3 {
		t.Errorf("%d calls, want 3", call.calls)
	}
}

// BEHAVIOUR 42: calls through one Retry share nothing.
func TestCallsShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := retry.New(retry.Exponential(time.Second, time.Hour), retry.Jitter(retry.None), retry.MaxElapsed(4*time.Second))
		handler := r.Wrap(policy.Invoke)
		once := func() {
			begin := time.Now()
			call := keeper(fail(errCall))
			_, err := handler(t.Context(), call)
			checkVerdict(t, err, verdict{3, retry.ErrAttempts, errCall})
			if took := time.Since(begin); took != 3*time.Second || call.calls != 3 {
				t.Errorf("%d calls in %v, want 3 in 3s", call.calls, took)
			}
		}
		once()
		once()
		var calls sync.WaitGroup
		for range 1000 {
			calls.Go(once)
		}
		calls.Wait()
	})
}

func TestEventsAreDatedByTheClock(t *testing.T) {
	clock := policytest.NewClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	r := retry.New(retry.Clock(clock))
	recorder := policytest.Record(r)
	r.Wrap(policy.Invoke)(t.Context(), policytest.Script(policytest.Return(1)))
	if events := recorder.Events(); len(events) != 1 || !events[0].Time.Equal(clock.Now()) {
		t.Errorf("events %+v, want one of %s", events, clock.Now())
	}
}

func TestEvents(t *testing.T) {
	refused := &open{}
	type event struct {
		kind    policy.Kind
		attempt int
		outcome policy.Outcome
		took    time.Duration
		delay   time.Duration
	}
	const second = time.Second
	tests := []struct {
		name string
		list []answer
		want []event
	}{
		{"BEHAVIOUR 33: success", []answer{give(1)}, []event{{policy.AttemptDone, 1, policy.Success, second, 0}}},
		{"exhausted", []answer{fail(errCall)}, []event{
			{policy.AttemptDone, 1, policy.Failure, second, 0},
			{policy.RetryScheduled, 1, policy.Failure, 0, 2 * second},
			{policy.AttemptDone, 2, policy.Failure, second, 0},
			{policy.RetryExhausted, 2, policy.Failure, 4 * second, 0},
		}},
		{"exhausted by values", []answer{give(503)}, []event{
			{policy.AttemptDone, 1, policy.Failure, second, 0},
			{policy.RetryScheduled, 1, policy.Failure, 0, 2 * second},
			{policy.AttemptDone, 2, policy.Failure, second, 0},
			{policy.RetryExhausted, 2, policy.Failure, 4 * second, 0},
		}},
		{"refused later", []answer{fail(errCall), fail(refused)}, []event{
			{policy.AttemptDone, 1, policy.Failure, second, 0},
			{policy.RetryScheduled, 1, policy.Failure, 0, 2 * second},
			{policy.AttemptDone, 2, policy.Ignored, second, 0},
			{policy.RetryExhausted, 2, policy.Ignored, 4 * second, 0},
		}},
		{"final later", []answer{fail(errCall), fail(retry.Permanent(errCall))}, []event{
			{policy.AttemptDone, 1, policy.Failure, second, 0},
			{policy.RetryScheduled, 1, policy.Failure, 0, 2 * second},
			{policy.AttemptDone, 2, policy.Failure, second, 0},
			{policy.RetryExhausted, 2, policy.Failure, 4 * second, 0},
		}},
		{"final at first", []answer{fail(retry.Permanent(errCall))}, []event{
			{policy.AttemptDone, 1, policy.Failure, second, 0},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := retry.New(retry.Name("x"), retry.Attempts(2), retry.Constant(2*second), retry.If(failingStatus))
				recorder := policytest.Record(r)
				call := keeper(tt.list...)
				r.Wrap(func(ctx context.Context, call policy.Call) (any, error) {
					time.Sleep(second)
					return policy.Invoke(ctx, call)
				})(t.Context(), call)
				var got []event
				for _, e := range recorder.Events() {
					got = append(got, event{e.Kind, e.Attempt, e.Outcome, e.Duration, e.Delay})
					if e.Policy != "retry" || e.Name != "x" || e.Time.IsZero() {
						t.Errorf("event %+v lacks a field", e)
					}
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("events\n%v, want\n%v", got, tt.want)
				}
			})
		})
	}
}
