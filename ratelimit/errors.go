package ratelimit

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// ErrExceeded is what every [ExceededError] Is.
var ErrExceeded = errors.New("ratelimit: exceeded")

// An ExceededError refuses a call because it would have to wait for a token, and may
// not or cannot wait that long. It Is [ErrExceeded] and [policy.ErrRejected].
//
// A call whose ctx has a deadline that comes before the token gets an error from
// which both an ExceededError and context.DeadlineExceeded are reachable.
type ExceededError struct {
	Name    string        // the limiter's
	RetryIn time.Duration // until the call's turn would have come, had it waited
}

// Error names the limiter and the wait.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("ratelimit %q: rate exceeded, retry in %v", e.Name, max(e.RetryIn.Round(time.Millisecond), time.Millisecond))
}

// Is reports a match with [ErrExceeded] and [policy.ErrRejected].
func (e *ExceededError) Is(target error) bool {
	return target == ErrExceeded || target == policy.ErrRejected
}

// RetryAfter is RetryIn: see [policy.RetryAfter].
func (e *ExceededError) RetryAfter() (wait time.Duration, ok bool) { return e.RetryIn, true }
