package policy

import (
	"context"
	"errors"
	"time"
)

// ErrRejected is what every refusal by a policy Is: an open circuit, a full
// bulkhead, an exceeded rate.
var ErrRejected = errors.New("policy: call rejected")

// Rejected tells whether err is a refusal and the call was never run: err Is
// [ErrRejected], and nothing in its tree has a method Ran() bool that returns true,
// as the error of a retry that was refused after a first attempt has. It reports
// false for nil.
func Rejected(err error) bool {
	return errors.Is(err, ErrRejected) && !find(err, func(e error) bool {
		r, ok := e.(interface{ Ran() bool })
		return ok && r.Ran()
	})
}

// RetryAfter asks the first error in err's tree that has the method
// RetryAfter() (time.Duration, bool) how long to wait before another call. It
// reports false where no error has it, or the first one does not know.
func RetryAfter(err error) (wait time.Duration, ok bool) {
	r, found := errors.AsType[interface {
		error
		RetryAfter() (time.Duration, bool)
	}](err)
	if !found {
		return 0, false
	}
	return r.RetryAfter()
}

// ContextError is nil while ctx lives. Then it is an error that Is both ctx.Err()
// and context.Cause(ctx): the caller has given up, and this says why. It costs one
// call of ctx.Err while ctx lives, and allocates only where a cause of its own has
// to be joined.
func ContextError(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return &contextError{err: err, cause: cause}
}

// contextError joins a ctx's error with a cause that says nothing of it.
type contextError struct{ err, cause error }

func (e *contextError) Error() string   { return e.err.Error() + ": " + e.cause.Error() }
func (e *contextError) Unwrap() []error { return []error{e.err, e.cause} }

// Timeout tells net/http's clients, which look at the outermost error only.
func (e *contextError) Timeout() bool { return e.err == context.DeadlineExceeded }

// Unfinished is the error of a call that still runs although its caller was
// answered, as under timeout.Abandon. AfterEnd has f run once that call ends, at
// once if it has ended.
//
// An error that may outlive its call also has a method Running() bool; [AfterEnd]
// takes one that returns false for finished.
type Unfinished interface {
	error
	AfterEnd(f func())
}

// AfterEnd has f run when the call that err left running ends. It reports false,
// and does not call f, where nothing still runs.
func AfterEnd(err error, f func()) bool {
	return find(err, func(e error) bool {
		u, ok := e.(Unfinished)
		if !ok {
			return false
		}
		if r, ok := e.(interface{ Running() bool }); ok && !r.Running() {
			return false
		}
		u.AfterEnd(f)
		return true
	})
}

// find walks err's tree in the order of errors.Is, until accept returns true.
func find(err error, accept func(error) bool) bool {
	for err != nil {
		if accept(err) {
			return true
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, branch := range e.Unwrap() {
				if find(branch, accept) {
					return true
				}
			}
			return false
		default:
			return false
		}
	}
	return false
}
