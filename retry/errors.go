package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrExhausted is what every [ExhaustedError] Is.
var ErrExhausted = errors.New("retry: exhausted")

// The limits that end the retries: see [ExhaustedError].
var (
	// ErrAttempts says that [Attempts] are used up.
	ErrAttempts = errors.New("retry: attempts used up")
	// ErrElapsed says that the next wait would pass [MaxElapsed].
	ErrElapsed = errors.New("retry: the next wait would pass the elapsed time allowed")
	// ErrRetryAfter says that the other side asks for a wait above [MaxRetryAfter].
	ErrRetryAfter = errors.New("retry: asked to wait too long")
	// ErrStopped says that the strategy given to [Backoff] returned backoff.Stop.
	ErrStopped = errors.New("retry: the backoff said stop")
)

var errDeadline = fmt.Errorf("retry: the next wait would not be over before the deadline: %w", context.DeadlineExceeded)

// An ExhaustedError is the verdict of a retry that gives up. It Is [ErrExhausted], and
// errors.Is and As reach Cause and Last. Once an attempt ran it is no refusal, even if
// its Cause is: see [policy.Rejected].
type ExhaustedError struct {
	Name     string        // the retry's
	Attempts int           // that ran: one that a policy refused is not among them
	Elapsed  time.Duration // since the call began

	// Cause is why there was no further attempt: ErrAttempts, ErrElapsed,
	// ErrRetryAfter, ErrStopped; an error that Is the ctx's, where ctx ended or a wait
	// would not be over before its deadline; or a policy's refusal. It is nil where the
	// last error was not to be repeated: permanent, Ignored, or a Judge's no.
	Cause error
	// Last is the last error of the attempts that ran. It is nil where each of them
	// returned a value that was called a failure.
	Last error
}

// Error names the retry and its numbers, and then says the cause and the last error.
func (e *ExhaustedError) Error() string {
	attempts := "attempts"
	if e.Attempts == 1 {
		attempts = "attempt"
	}
	s := fmt.Sprintf("retry %q: gave up after %d %s in %v", e.Name, e.Attempts, attempts, e.Elapsed.Round(time.Microsecond))
	if e.Cause != nil && e.Cause != ErrAttempts { // which are told
		s += ": " + reason(e.Cause)
	}
	if e.Last != nil {
		s += ": " + e.Last.Error()
	}
	return s
}

// Is reports a match with [ErrExhausted].
func (e *ExhaustedError) Is(target error) bool { return target == ErrExhausted }

// Unwrap returns Last and Cause, as far as they are there.
func (e *ExhaustedError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Last, e.Cause} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Ran tells [policy.Rejected] that an attempt ran.
func (e *ExhaustedError) Ran() bool { return e.Attempts > 0 }

// reason is cause within a text that names the retry already.
func reason(cause error) string {
	if cause == nil {
		return ""
	}
	return strings.TrimPrefix(cause.Error(), kind+": ")
}

// Permanent marks err as one that no retry repeats, also where it is wrapped further.
// The caller gets it as it is returned by the call: its text is err's, and errors.Is
// and As reach err. Permanent(nil) is nil. An error of backoff.Permanent is taken the
// same way.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

type permanent struct{ err error }

func (p *permanent) Error() string { return p.err.Error() }
func (p *permanent) Unwrap() error { return p.err }
