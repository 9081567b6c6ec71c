package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// A row of the composition table: what a pipeline makes of a dependency that answers so.
func TestComposition(t *testing.T) {
	tests := []struct {
		name     string
		pipeline func() *holdfast.Pipeline
		steps    []policytest.Step
		calls    int // how often the dependency was called
		took     time.Duration
		errs     []error
	}{
		{
			"BEHAVIOUR 37: the breaker ends the retries",
			func() *holdfast.Pipeline {
				return holdfast.Compose(breaker.New("payments", breaker.ConsecutiveFailures(3)), retry.New(retry.Attempts(7), retry.Constant(time.Second)))
			},
			[]policytest.Step{policytest.Fail(errDown)},
			3, 3 * time.Second,
			[]error{errDown, breaker.ErrOpen, retry.ErrExhausted},
		},
		{
			"BEHAVIOUR 40: each attempt is bounded, and repeated",
			func() *holdfast.Pipeline {
				return holdfast.Compose(timeout.New(time.Second), retry.New(retry.Attempts(4), retry.Constant(0)))
			},
			[]policytest.Step{policytest.Block()},
			4, 4 * time.Second,
			[]error{timeout.ErrExceeded, context.DeadlineExceeded, retry.ErrExhausted},
		},
		{
			"the total timeout cuts the wait short before it begins",
			func() *holdfast.Pipeline {
				return holdfast.Compose(retry.New(retry.Constant(time.Minute)), timeout.New(10*time.Second))
			},
			[]policytest.Step{policytest.Fail(errDown)},
			1, 0,
			[]error{errDown, context.DeadlineExceeded, retry.ErrExhausted},
		},
		{
			"the total timeout strikes in an attempt",
			func() *holdfast.Pipeline {
				return holdfast.Compose(timeout.New(4*time.Second), retry.New(retry.Constant(0)), timeout.New(10*time.Second))
			},
			[]policytest.Step{policytest.Block()},
			3, 10 * time.Second,
			[]error{timeout.ErrExceeded},
		},
		{
			"a timeout outside the breaker tells it nothing",
			func() *holdfast.Pipeline {
				return holdfast.Compose(breaker.New("payments", breaker.ConsecutiveFailures(1)), retry.New(retry.Attempts(1)), timeout.New(time.Second))
			},
			[]policytest.Step{policytest.Block()},
			1, time.Second,
			[]error{timeout.ErrExceeded},
		},
		{
			"recovered by a retry",
			func() *holdfast.Pipeline {
				l := full()
				l.Retry = retry.New(retry.Constant(time.Second))
				return l.Compose()
			},
			[]policytest.Step{policytest.Fail(errDown), policytest.Fail(errDown), policytest.Return("paid")},
			3, 2 * time.Second, nil,
		},
		{
			"answered by the fallback",
			func() *holdfast.Pipeline { l := full(); l.Retry = retry.New(retry.Constant(0)); return l.Compose() },
			[]policytest.Step{policytest.Fail(errDown)},
			3, 0, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script, start := policytest.Script(tt.steps...), time.Now()
				_, err := holdfast.Do(t.Context(), tt.pipeline(), script.Invoke)
				if script.Calls() != tt.calls || time.Since(start) != tt.took {
					t.Errorf("%d calls in %s, want %d in %s", script.Calls(), time.Since(start), tt.calls, tt.took)
				}
				if (err == nil) != (tt.errs == nil) {
					t.Errorf("error %v", err)
				}
				for _, want := range tt.errs {
					if !errors.Is(err, want) {
						t.Errorf("error %v, want one that Is %v", err, want)
					}
				}
			})
		})
	}
}
