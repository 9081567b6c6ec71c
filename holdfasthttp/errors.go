package holdfasthttp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNotReplayable says that a policy asked for another attempt although the request's
// body was sent, and is not kept: see [MaxReplay]. A retry does not ask.
var ErrNotReplayable = errors.New("holdfasthttp: the request's body cannot be sent again")

// ErrBodyTimeout is what every [BodyTimeoutError] Is.
var ErrBodyTimeout = errors.New("holdfasthttp: no data of the body in time")

// A BodyTimeoutError says that a read of a response's body waited longer than
// [BodyTimeout] for data. It Is [ErrBodyTimeout] and context.DeadlineExceeded.
type BodyTimeoutError struct {
	Limit time.Duration // of each read
	Err   error         // what the read then returned
}

// Error names the limit, and then says what the read returned.
func (e *BodyTimeoutError) Error() string {
	return fmt.Sprintf("holdfasthttp: no data of the body within %v: %v", e.Limit, e.Err)
}

// Is reports a match with [ErrBodyTimeout] and context.DeadlineExceeded.
func (e *BodyTimeoutError) Is(target error) bool {
	return target == ErrBodyTimeout || target == context.DeadlineExceeded
}

// Unwrap returns what the read returned.
func (e *BodyTimeoutError) Unwrap() error { return e.Err }

// Timeout is true: e is a timeout to package net too.
func (e *BodyTimeoutError) Timeout() bool { return true }

var (
	errOver       = errors.New("holdfasthttp: the call is over")
	errNoResponse = errors.New("holdfasthttp: the base transport returned neither a response nor an error")
)

// forURLError is err such that those who ask the outermost error only whether it is a
// timeout, as the *url.Error around it does, learn what the tree of err says.
func forURLError(err error) error {
	if t, ok := err.(timeouter); ok && t.Timeout() || !isTimeout(err) {
		return err
	}
	return timeoutError{err}
}

type timeoutError struct{ error }

func (e timeoutError) Unwrap() error { return e.error }
func (e timeoutError) Timeout() bool { return true }

type timeouter interface{ Timeout() bool }

// isTimeout tells whether err is a deadline's end, or anything in its tree says that it
// is a timeout.
func isTimeout(err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case timeouter:
		if e.Timeout() {
			return true
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return isTimeout(e.Unwrap())
	case interface{ Unwrap() []error }:
		if slices.ContainsFunc(e.Unwrap(), isTimeout) {
			return true
		}
	}
	return false
}
