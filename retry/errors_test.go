package retry_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"
)

func TestExhaustedErrorMessage(t *testing.T) {
	tests := []struct {
		err  *retry.ExhaustedError
		want string
	}{
		{
			&retry.ExhaustedError{Name: "x", Attempts: 3, Elapsed: time.Second, Cause: retry.ErrAttempts, Last: errCall},
			`retry "x": gave up after 3 attempts in 1s: call failed`,
		},
		{
			&retry.ExhaustedError{Name: "x", Attempts: 1, Cause: &open{}, Last: errCall},
			`retry "x": gave up after 1 attempt in 0s: circuit open: call failed`,
		},
		{&retry.ExhaustedError{Name: "x", Attempts: 2, Last: errCall}, `retry "x": gave up after 2 attempts in 0s: call failed`},
		{
			&retry.ExhaustedError{Name: "x", Attempts: 2, Cause: retry.ErrElapsed},
			`retry "x": gave up after 2 attempts in 0s: the next wait would pass the elapsed time allowed`,
		},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("message\n%s, want\n%s", got, tt.want)
		}
	}
}

func TestExhaustedErrorTree(t *testing.T) {
	err := error(&retry.ExhaustedError{Attempts: 1, Cause: &open{}, Last: errCall})
	if !errors.Is(err, retry.ErrExhausted) || !errors.Is(err, errCall) || !errors.Is(err, policy.ErrRejected) {
		t.Errorf("error %v does not reach all of its parts", err)
	}
	if policy.Rejected(err) || !policy.Rejected(&retry.ExhaustedError{Cause: &open{}}) {
		t.Error("a verdict is a refusal where no attempt ran, and only there")
	}
	if errors.Is(err, retry.ErrAttempts) || len((&retry.ExhaustedError{}).Unwrap()) != 0 {
		t.Error("a verdict has parts that it was not given")
	}
}

func TestPermanent(t *testing.T) {
	if err := retry.Permanent(nil); err != nil {
		t.Errorf("Permanent(nil) is %v", err)
	}
	err := retry.Permanent(errCall)
	if err.Error() != errCall.Error() || !errors.Is(err, errCall) {
		t.Errorf("error %v, want one that reads as and Is %v", err, errCall)
	}
}
