package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/timeout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

var errCall = errors.New("call failed")

// waiting is a call that heeds its ctx and has nothing else to wait for.
var waiting = policy.CallFunc(func(ctx context.Context) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
})

// after is a call that ignores its ctx.
func after(d time.Duration, value any, err error) policy.CallFunc {
	return func(context.Context) (any, error) {
		time.Sleep(d)
		return value, err
	}
}

// bubbled runs f in a synctest bubble, and fails if a goroutine is left.
func bubbled(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestCall(t *testing.T) {
	own := fmt.Errorf("driver: %w", context.DeadlineExceeded)
	tests := []struct {
		name     string
		policy   policy.Policy
		deadline time.Duration // the caller's, if > 0
		cancel   time.Duration // by the caller, if > 0
		call     policy.Call
		value    any
		took     time.Duration
		exceeded string  // name of the timeout whose ExceededError is returned
		errs     []error // all reachable; none: no error
	}{
		{
			"success", timeout.New(50 * ms), 0, 0,
			after(10*ms, "ok", nil), "ok", 10 * ms, "", nil,
		},
		{
			"error before the limit", timeout.New(50 * ms), 0, 0,
			after(10*ms, "v", errCall), "v", 10 * ms, "",
			[]error{errCall},
		},
		{
			"BEHAVIOUR 47", timeout.New(50 * ms), 0, 0,
			waiting, nil, 50 * ms, "timeout",
			[]error{timeout.ErrExceeded, context.DeadlineExceeded},
		},
		{
			"an error after the limit, from a call that ignores its ctx", timeout.New(50 * ms), 0, 0,
			after(60*ms, "v", errCall), "v", 60 * ms, "timeout",
			[]error{timeout.ErrExceeded, errCall},
		},
		{
			"an error at the limit", timeout.New(50 * ms), 0, 0,
			after(50*ms, nil, errCall), nil, 50 * ms, "timeout",
			[]error{errCall},
		},
		{
			"BEHAVIOUR 48", timeout.New(50 * ms), 0, 0,
			after(400*ms, "paid", nil), "paid", 400 * ms, "", nil,
		},
		{
			"BEHAVIOUR 49: the caller's deadline", timeout.New(50 * ms), 20 * ms, 0,
			waiting, nil, 20 * ms, "",
			[]error{context.DeadlineExceeded},
		},
		{
			"BEHAVIOUR 49: the caller cancels", timeout.New(50 * ms), 0, 10 * ms,
			waiting, nil, 10 * ms, "",
			[]error{context.Canceled},
		},
		{
			"the caller's deadline is later", timeout.New(50 * ms), 80 * ms, 0,
			waiting, nil, 50 * ms, "timeout", nil,
		},
		{
			"the same deadline is the caller's", timeout.New(50 * ms), 50 * ms, 0,
			waiting, nil, 50 * ms, "",
			[]error{context.DeadlineExceeded},
		},
		{
			"both passed unasked, the caller's first", timeout.New(50 * ms), 20 * ms, 0,
			after(90*ms, nil, errCall), nil, 90 * ms, "",
			[]error{errCall},
		},
		{
			"both passed unasked, the limit first", timeout.New(50 * ms), 80 * ms, 0,
			after(90*ms, nil, errCall), nil, 90 * ms, "timeout",
			[]error{errCall},
		},
		{
			"cancelled and passed, unasked: the caller's", timeout.New(50 * ms), 0, 80 * ms,
			after(90*ms, nil, errCall), nil, 90 * ms, "",
			[]error{errCall},
		},
		{
			"BEHAVIOUR 50: the outer is shorter", nested(50*ms, 100*ms), 0, 0,
			waiting, nil, 50 * ms, "outer",
			[]error{context.DeadlineExceeded},
		},
		{
			"BEHAVIOUR 50: the inner is shorter", nested(100*ms, 50*ms), 0, 0,
			waiting, nil, 50 * ms, "inner",
			[]error{context.DeadlineExceeded},
		},
		{
			"BEHAVIOUR 50: unasked, the outer is shorter", nested(50*ms, 100*ms), 0, 0,
			after(150*ms, nil, errCall), nil, 150 * ms, "outer",
			[]error{errCall},
		},
		{
			"BEHAVIOUR 51", timeout.New(50 * ms), 0, 0,
			after(10*ms, nil, own), nil, 10 * ms, "",
			[]error{own},
		},
		{
			"a limit of a nanosecond", timeout.New(1), 0, 0,
			waiting, nil, 1, "timeout", nil,
		},
		{
			"a limit without end", timeout.New(math.MaxInt64), 0, 80 * ms,
			waiting, nil, 80 * ms, "",
			[]error{context.Canceled},
		},
		{
			"LimitFunc", timeout.New(time.Second, limit(50*ms)), 0, 0,
			waiting, nil, 50 * ms, "timeout", nil,
		},
		{
			"LimitFunc: none for this call", timeout.New(50*ms, limit(0)), 0, 0,
			after(90*ms, nil, errCall), nil, 90 * ms, "",
			[]error{errCall},
		},
		{
			"LimitFunc: none for this call, negative", timeout.New(50*ms, limit(math.MinInt64)), 80 * ms, 0,
			waiting, nil, 80 * ms, "",
			[]error{context.DeadlineExceeded},
		},
	}
	for _, tt := range tests {
		bubbled(t, tt.name, func(t *testing.T) {
			ctx, cancel := callers(t, tt.deadline, tt.cancel)
			defer cancel()
			start := time.Now()
			value, err := tt.policy.Wrap(policy.Invoke)(ctx, tt.call)
			if took := time.Since(start); took != tt.took {
				t.Errorf("took %v, want %v", took, tt.took)
			}
			if value != tt.value {
				t.Errorf("value %v, want %v", value, tt.value)
			}
			if (err != nil) != (tt.exceeded != "" || len(tt.errs) > 0) {
				t.Errorf("error %v", err)
			}
			for _, want := range tt.errs {
				if !errors.Is(err, want) {
					t.Errorf("error %v, want one that Is %v", err, want)
				}
			}
			checkExceeded(t, err, tt.exceeded)
		})
	}
}

func checkExceeded(t *testing.T, err error, by string) {
	t.Helper()
	exceeded, ok := errors.AsType[*timeout.ExceededError](err)
	if ok != (by != "") {
		t.Fatalf("error %v, want an ExceededError of %q", err, by)
	}
	if ok && (exceeded.Name != by || !exceeded.Timeout() || !errors.Is(err, timeout.ErrExceeded) || exceeded.Running()) {
		t.Errorf("error %+v, want one of %q", exceeded, by)
	}
	ended := !ok || policy.AfterEnd(err, func() {})
	if ok {
		exceeded.AfterEnd(func() { ended = true })
	}
	if !ended {
		t.Error("AfterEnd did not run its func")
	}
}

// callers is the ctx of a caller with a deadline, or who cancels.
func callers(t *testing.T, deadline, cancel time.Duration) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	if cancel > 0 {
		time.AfterFunc(cancel, stop)
	}
	if deadline <= 0 {
		deadline = time.Hour
	}
	return context.WithTimeout(ctx, deadline)
}

func nested(outer, inner time.Duration) policy.Policy {
	return holdfast.Unchecked(timeout.New(inner, timeout.Name("inner")), timeout.New(outer, timeout.Name("outer")))
}

func limit(d time.Duration) timeout.Option {
	return timeout.LimitFunc(func(context.Context) time.Duration { return d })
}

// A caller that has given up: the call is not run.
func TestCallerGone(t *testing.T) {
	cause := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for _, opts := range [][]timeout.Option{nil, {timeout.Abandon()}} {
		_, err := timeout.New(time.Second, opts...).Wrap(policy.Invoke)(ctx, policy.CallFunc(func(context.Context) (any, error) {
			t.Error("the call ran")
			return nil, nil
		}))
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || policy.AfterEnd(err, func() {}) {
			t.Errorf("error %v, want the caller's, with nothing left running", err)
		}
	}
}

// The verdict holds the call's error, unless it is the ctx's own cause.
func TestVerdict(t *testing.T) {
	handler := timeout.New(50 * ms).Wrap(policy.Invoke)
	bubbled(t, "cause", func(t *testing.T) {
		var cause error
		_, err := handler(t.Context(), policy.CallFunc(func(ctx context.Context) (any, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil, cause
		}))
		if err != cause {
			t.Errorf("error %v, want the cause itself, %v", err, cause)
		}
		checkExceeded(t, err, "timeout")
	})
	bubbled(t, "wrapped cause", func(t *testing.T) {
		var own error
		_, err := handler(t.Context(), policy.CallFunc(func(ctx context.Context) (any, error) {
			<-ctx.Done()
			own = fmt.Errorf("get: %w", context.Cause(ctx))
			return nil, own
		}))
		exceeded, ok := err.(*timeout.ExceededError)
		if !ok || exceeded.Err != own || exceeded.Limit != 50*ms {
			t.Errorf("error %#v, want one that holds %v", err, own)
		}
	})
}

func TestPanicAndGoexitPass(t *testing.T) {
	var call context.Context
	handler := timeout.New(time.Hour).Wrap(policy.Invoke)
	end := func(how func()) {
		ended := make(chan bool)
		go func() {
			defer close(ended)
			defer func() {
				if got := recover(); got != nil && got != errCall {
					t.Errorf("recovered %v, want the call's own value", got)
				}
			}()
			handler(t.Context(), policy.CallFunc(func(ctx context.Context) (any, error) {
				call = ctx
				ctx.Done()
				how()
				return nil, nil
			}))
			t.Error("the handler returned")
		}()
		<-ended
		if call.Err() != context.Canceled {
			t.Errorf("ctx %v afterwards, want it cancelled", call.Err())
		}
	}
	end(func() { panic(errCall) })
	end(runtime.Goexit)
}

func TestBadSettings(t *testing.T) {
	tests := []struct {
		name  string
		limit time.Duration
		opts  []timeout.Option
		want  string
	}{
		{"limit", 0, nil, `timeout "timeout": New(0s): must be greater than 0`},
		{"negative limit beside LimitFunc", -1, []timeout.Option{limit(1)}, `timeout "timeout": New(-1ns): must be greater than 0`},
		{"nil option", 1, []timeout.Option{nil}, `timeout "timeout": Option(nil): must not be nil`},
		{
			"all faults at once", 0,
			[]timeout.Option{timeout.Name(""), timeout.Clock(nil), timeout.LimitFunc(nil)},
			`timeout "": Clock(nil): must not be nil; LimitFunc(nil): must not be nil; Name(""): must not be empty; New(0s): must be greater than 0`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if p, err := timeout.Build(tt.limit, tt.opts...); p != nil || err == nil || err.Error() != tt.want {
				t.Errorf("Build: %v, %v, want %q", p, err, tt.want)
			}
			defer func() {
				if got := recover(); got != tt.want {
					t.Errorf("New panicked with %v, want %q", got, tt.want)
				}
			}()
			timeout.New(tt.limit, tt.opts...)
		})
	}
}

func TestDescribe(t *testing.T) {
	p := timeout.New(time.Second, timeout.Name("db"), timeout.Name("cache"), timeout.Abandon())
	d := p.Describe()
	if d.Kind != "timeout" || d.Name != "cache" || d.Name != p.Name() || !d.Param("abandon").Bool() ||
		!d.Param("limit").Equal(slog.DurationValue(time.Second)) {
		t.Errorf("described as %+v", d)
	}
	if d := timeout.New(time.Second, limit(1)).Describe(); d.Param("limit").String() != "per call" {
		t.Errorf("described as %+v", d)
	}
}

func TestConformance(t *testing.T) {
	for name, opts := range map[string][]timeout.Option{
		"bound":   nil,
		"abandon": {timeout.Abandon()},
		"none":    {limit(0)},
	} {
		t.Run(name, func(t *testing.T) {
			policytest.Run(t, func() policy.Policy { return timeout.New(time.Minute, opts...) })
		})
	}
}

func TestSuccessAllocatesItsContextOnly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	handler := timeout.New(time.Second).Wrap(policy.Invoke)
	if n := testing.AllocsPerRun(1000, func() { handler(ctx, ignoring) }); n != 1 {
		t.Errorf("%v allocations, want one", n)
	}
	handler = timeout.New(time.Second, limit(0)).Wrap(policy.Invoke)
	if n := testing.AllocsPerRun(1000, func() { handler(ctx, ignoring) }); n != 0 {
		t.Errorf("%v allocations without a limit, want none", n)
	}
}
