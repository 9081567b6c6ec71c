package policy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

const unknown policy.Outcome = 0

func TestOutcomeString(t *testing.T) {
	for outcome, want := range map[policy.Outcome]string{
		policy.Success: "success", policy.Failure: "failure", policy.Ignored: "ignored", 0: "none", 9: "outcome(9)",
	} {
		if got := outcome.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDefaultClassifier(t *testing.T) {
	tests := []struct {
		name  string
		value any
		err   error
		want  policy.Outcome
	}{
		{"no error", nil, nil, policy.Success},
		{"a value that is an error", errCall, nil, policy.Success},
		{"error", nil, errCall, policy.Failure},
		{"error beside a value", 1, errCall, policy.Failure},
		{"typed nil error", nil, (*ran)(nil), policy.Failure},
		{"refusal", nil, fmt.Errorf("full: %w", policy.ErrRejected), policy.Ignored},
		{"refusal after an attempt", nil, &ran{true, policy.ErrRejected}, policy.Failure},
		{"BEHAVIOUR 28: the caller's cancellation is for who knows the ctx", nil, context.Canceled, policy.Failure},
	}
	for _, tt := range tests {
		if got := policy.DefaultClassifier(tt.value, tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestIgnoreErrors(t *testing.T) {
	errMissing := errors.New("missing")
	targets := []error{errMissing, context.Canceled, nil}
	classify := policy.IgnoreErrors(targets...)
	targets[0] = errCall // which must not matter any more
	tests := []struct {
		err  error
		want policy.Outcome
	}{
		{nil, policy.Success},
		{errMissing, policy.Ignored},
		{fmt.Errorf("user 7: %w", errMissing), policy.Ignored},
		{errors.Join(errCall, context.Canceled), policy.Ignored},
		{errCall, policy.Failure},
		{policy.ErrRejected, policy.Ignored},
	}
	for _, tt := range tests {
		if got := classify(nil, tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
	if got := policy.IgnoreErrors()(nil, errCall); got != policy.Failure {
		t.Errorf("of no targets: %v, want %v", got, policy.Failure)
	}
}

type response struct{ status int }

// The typed function is asked, with a zero value where there is none beside an error,
// and not asked about what is of another type.
func TestClassify(t *testing.T) {
	byStatus := func(r *response, err error) policy.Outcome {
		switch {
		case r == nil && err == nil:
			return policy.Ignored
		case err != nil || r.status >= 500:
			return policy.Failure
		default:
			return policy.Success
		}
	}
	pointers := policy.Classify(byStatus)
	numbers := policy.Classify(func(status int, err error) policy.Outcome {
		if status == 0 && err != nil {
			return policy.Ignored
		}
		return policy.Success
	})
	anything := policy.Classify(func(any, error) policy.Outcome { return policy.Ignored })
	tests := []struct {
		name     string
		classify policy.Classifier
		value    any
		err      error
		want     policy.Outcome
	}{
		{"BEHAVIOUR 31: by value", pointers, &response{503}, nil, policy.Failure},
		{"by value", pointers, &response{200}, nil, policy.Success},
		{"typed nil", pointers, (*response)(nil), nil, policy.Ignored},
		{"typed nil beside an error", pointers, (*response)(nil), errCall, policy.Failure},
		{"nil beside an error is the zero pointer", pointers, nil, errCall, policy.Failure},
		{"nil beside an error is the zero number", numbers, nil, errCall, policy.Ignored},
		{"nil without an error is not asked about", pointers, nil, nil, policy.Success},
		{"another type", numbers, "503", nil, policy.Success},
		{"another type beside an error", numbers, "503", errCall, policy.Failure},
		{"another type beside a refusal", numbers, "503", policy.ErrRejected, policy.Ignored},
		{"an interface takes every value", anything, "503", nil, policy.Ignored},
		{"an interface takes nil beside an error", anything, nil, errCall, policy.Ignored},
		{"an interface is not asked about nil", anything, nil, nil, policy.Success},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.classify(tt.value, tt.err); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}

	defer func() {
		if got := recover(); got != "policy: Classify(nil): must not be nil" {
			t.Errorf("panic %v", got)
		}
	}()
	policy.Classify[int](nil)
}

// judged is a call with an opinion.
type judged struct {
	policy.Call
	outcome   policy.Outcome
	discarded []any
}

func (j *judged) Outcome(any, error) policy.Outcome      { return j.outcome }
func (j *judged) Again(any, error) (time.Duration, bool) { return 0, false }
func (j *judged) Keep(any, func()) bool                  { return false }
func (j *judged) Discard(value any)                      { j.discarded = append(j.discarded, value) }

func TestJudgement(t *testing.T) {
	plain := policy.CallFunc(func(context.Context) (any, error) { return nil, nil })
	always := func(o policy.Outcome) policy.Classifier {
		return func(any, error) policy.Outcome { return o }
	}
	tests := []struct {
		name     string
		classify policy.Classifier
		call     policy.Call
		err      error
		want     policy.Outcome
	}{
		{"nobody has a say", nil, plain, errCall, policy.Failure},
		{"the call's Judge", nil, &judged{outcome: policy.Ignored}, errCall, policy.Ignored},
		{"a Judge without an opinion", nil, &judged{}, errCall, policy.Failure},
		{"the classifier before the Judge", always(policy.Success), &judged{outcome: policy.Ignored}, errCall, policy.Success},
		{"a classifier without an opinion", always(unknown), plain, policy.ErrRejected, policy.Ignored},
		{"which leaves it to the error, not to the Judge", always(unknown), &judged{outcome: policy.Ignored}, nil, policy.Success},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := policy.Judgement(tt.classify, tt.call, nil, tt.err); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestDiscard(t *testing.T) {
	call := &judged{}
	for _, value := range []any{"body", nil, (*response)(nil)} {
		policy.Discard(call, value)
	}
	if len(call.discarded) != 2 || call.discarded[0] != "body" || call.discarded[1] != (*response)(nil) {
		t.Errorf("discarded %v, want the body and the typed nil", call.discarded)
	}
	policy.Discard(policy.CallFunc(nil), "body") // is no Keeper
}

func TestFuncs(t *testing.T) {
	call := policy.CallFunc(func(ctx context.Context) (any, error) { return ctx.Value(key{}), errCall })
	twice := policy.Func(func(next policy.Handler) policy.Handler {
		return func(ctx context.Context, call policy.Call) (any, error) {
			_, _ = next(ctx, call)
			return next(ctx, call)
		}
	})
	ctx := context.WithValue(t.Context(), key{}, "value")
	if value, err := twice.Wrap(policy.Invoke)(ctx, call); value != "value" || err != errCall {
		t.Errorf("got %v, %v, want what the call returned", value, err)
	}
}
