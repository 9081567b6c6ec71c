package policy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// ran is an error that knows whether the call was run, as a retry's verdict.
type ran struct {
	ran bool
	err error
}

func (r *ran) Error() string { return "ran" }
func (r *ran) Ran() bool     { return r != nil && r.ran }
func (r *ran) Unwrap() error {
	if r == nil {
		return nil
	}
	return r.err
}

func TestRejected(t *testing.T) {
	refused := fmt.Errorf("bulkhead: %w", policy.ErrRejected)
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"nil", nil, false},
		{"other", errCall, false},
		{"bare", policy.ErrRejected, true},
		{"wrapped", refused, true},
		{"beside another", errors.Join(errCall, refused), true},
		{"beside nil", errors.Join(nil, refused), true},
		{"BEHAVIOUR 36: after an attempt", &ran{true, refused}, false},
		{"an attempt further in", fmt.Errorf("call: %w", &ran{true, refused}), false},
		{"an attempt in another branch", errors.Join(refused, &ran{true, errCall}), false},
		{"before any attempt", &ran{false, refused}, true},
		{"one that ran below one that did not", &ran{false, &ran{true, refused}}, false},
		{"ran, and no refusal", &ran{true, errCall}, false},
		{"typed nil", (*ran)(nil), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := policy.Rejected(tt.err); got != tt.want {
				t.Errorf("%t, want %t", got, tt.want)
			}
		})
	}
}

// waits is an error that asks for a wait, or says that it does not know.
type waits struct {
	wait  time.Duration
	known bool
	err   error
}

func (w waits) Error() string                     { return "busy" }
func (w waits) RetryAfter() (time.Duration, bool) { return w.wait, w.known }
func (w waits) Unwrap() error                     { return w.err }

func TestRetryAfter(t *testing.T) {
	minute, hour := waits{time.Minute, true, nil}, waits{time.Hour, true, nil}
	tests := []struct {
		name string
		err  error
		want time.Duration
		ok   bool
	}{
		{"nil", nil, 0, false},
		{"nobody", errCall, 0, false},
		{"bare", minute, time.Minute, true},
		{"wrapped", fmt.Errorf("call: %w", minute), time.Minute, true},
		{"the first branch that has a say", errors.Join(errCall, minute, hour), time.Minute, true},
		{"the outer before the inner", waits{time.Second, true, minute}, time.Second, true},
		{"the first does not know, and the next is not asked", errors.Join(waits{}, hour), 0, false},
		{"negative is passed on", waits{-1, true, nil}, -1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := policy.RetryAfter(tt.err); got != tt.want || ok != tt.ok {
				t.Errorf("%v, %t, want %v, %t", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestContextError(t *testing.T) {
	canceled := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	expired := func(cause error) context.Context {
		ctx, cancel := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), cause)
		t.Cleanup(cancel)
		return ctx
	}
	tests := []struct {
		name    string
		ctx     context.Context
		is      []error
		same    error // the error itself, where it is not a new one
		message string
		timeout bool
	}{
		{"cancelled", canceled(nil), []error{context.Canceled}, context.Canceled, "context canceled", false},
		{
			"cancelled with a cause", canceled(errGone),
			[]error{context.Canceled, errGone},
			nil,
			"context canceled: the caller left", false,
		},
		{"expired", expired(nil), []error{context.DeadlineExceeded}, context.DeadlineExceeded, "context deadline exceeded", true},
		{
			"expired with a cause", expired(errLimit),
			[]error{context.DeadlineExceeded, errLimit},
			nil,
			"context deadline exceeded: limit reached", true,
		},
		{
			"a cause that says it all", expired(limitError{}),
			[]error{context.DeadlineExceeded, limitError{}},
			limitError{},
			"limit of 1s", true,
		},
		{
			"cancelled because of a deadline elsewhere", canceled(context.DeadlineExceeded),
			[]error{context.Canceled, context.DeadlineExceeded},
			nil,
			"context canceled: context deadline exceeded", false,
		},
		{"not of package context", strangeContext{t.Context()}, []error{errCall}, errCall, "call failed", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := policy.ContextError(tt.ctx)
			for _, target := range tt.is {
				if !errors.Is(err, target) {
					t.Errorf("error %v, want one that Is %v", err, target)
				}
			}
			if tt.same != nil && err != tt.same {
				t.Errorf("error %#v, want %#v itself", err, tt.same)
			}
			if err.Error() != tt.message {
				t.Errorf("message %q, want %q", err, tt.message)
			}
			if e, ok := err.(interface{ Timeout() bool }); (ok && e.Timeout()) != tt.timeout {
				t.Errorf("Timeout() is %t, want %t", !tt.timeout, tt.timeout)
			}
		})
	}

	if err := policy.ContextError(t.Context()); err != nil {
		t.Errorf("error %v while ctx lives", err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = policy.ContextError(t.Context()) }); n != 0 {
		t.Errorf("%v allocations while ctx lives, want none", n)
	}
}

// limitError is a cause that Is DeadlineExceeded, as timeout.ExceededError.
type limitError struct{}

func (limitError) Error() string   { return "limit of 1s" }
func (limitError) Is(e error) bool { return e == context.DeadlineExceeded }
func (limitError) Timeout() bool   { return true }

// strangeContext ends with an error of its own.
type strangeContext struct{ context.Context }

func (strangeContext) Err() error { return errCall }

// running is the error of a call that may still run.
type running struct {
	runs bool
	told int
}

func (r *running) Error() string   { return "abandoned" }
func (r *running) Running() bool   { return r.runs }
func (r *running) AfterEnd(func()) { r.told++ }

// forever has no Running: it never outlives its call.
type forever struct{ running }

func (f *forever) Running(_ int) {}

func TestAfterEnd(t *testing.T) {
	tests := []struct {
		name  string
		tree  func(r *running) error
		runs  bool
		found bool
	}{
		{"bare", func(r *running) error { return r }, true, true},
		{"wrapped", func(r *running) error { return fmt.Errorf("call: %w", r) }, true, true},
		{"in a branch", func(r *running) error { return errors.Join(errCall, fmt.Errorf("call: %w", r)) }, true, true},
		{"behind one that has ended", func(r *running) error { return errors.Join(&running{}, r) }, true, true},
		{"ended", func(r *running) error { return r }, false, false},
		{"none", func(*running) error { return errCall }, true, false},
		{"nil", func(*running) error { return nil }, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &running{runs: tt.runs}
			found := policy.AfterEnd(tt.tree(r), func() { t.Error("f was called by AfterEnd itself") })
			if found != tt.found || (r.told == 1) != tt.found {
				t.Errorf("%t, and told %d times, want %t", found, r.told, tt.found)
			}
		})
	}

	one, two := &running{runs: true}, &running{runs: true}
	if policy.AfterEnd(errors.Join(one, two), func() {}); one.told != 1 || two.told != 0 {
		t.Errorf("of two that run, told %d and %d, want the first only", one.told, two.told)
	}
	if f := (&forever{}); !policy.AfterEnd(f, func() {}) || f.told != 1 {
		t.Error("an error without Running() bool runs")
	}
}
