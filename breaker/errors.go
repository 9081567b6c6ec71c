package breaker

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// ErrOpen is what every [CircuitOpenError] Is.
var ErrOpen = errors.New("breaker: circuit open")

// A CircuitOpenError refuses a call because the circuit admits none at the moment. It Is [ErrOpen] and [policy.ErrRejected].
type CircuitOpenError struct {
	Name  string // the breaker's
	State State  // Open, HalfOpen (all trials are taken) or Isolated
	// RetryIn is when a call may be admitted: what is left of the open period, or of the
	// oldest trial's TrialTimeout. 0 while isolated: only the operator knows.
	RetryIn time.Duration
}

// Error names the breaker, its state and the wait.
func (e *CircuitOpenError) Error() string {
	if e.State == Isolated {
		return fmt.Sprintf("breaker %q: circuit isolated", e.Name)
	}
	return fmt.Sprintf("breaker %q: circuit %s, retry in %s", e.Name, e.State, max(e.RetryIn.Round(time.Millisecond), time.Millisecond))
}

// Is reports a match with [ErrOpen] and [policy.ErrRejected].
func (e *CircuitOpenError) Is(target error) bool {
	return target == ErrOpen || target == policy.ErrRejected
}

// RetryAfter is RetryIn, not known while isolated: see [policy.RetryAfter].
func (e *CircuitOpenError) RetryAfter() (wait time.Duration, ok bool) {
	return e.RetryIn, e.State != Isolated
}
