package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrExceeded is what every [ExceededError] Is.
var ErrExceeded = errors.New("timeout: limit exceeded")

// An ExceededError says that a call outlasted its limit. It Is [ErrExceeded] and
// context.DeadlineExceeded. It is also the context.Cause of the call's ctx, without
// an Err then.
//
// Under [Abandon] it is a [policy.Unfinished] while the call runs. It is safe for
// concurrent use as long as nobody changes its fields.
type ExceededError struct {
	Name  string        // the timeout's
	Limit time.Duration // of this call
	Err   error         // what the call returned; nil where it had not yet

	work *work // of an abandoned call
}

// Error names the timeout and its limit, and then says what the call returned.
func (e *ExceededError) Error() string {
	message := fmt.Sprintf("timeout %q: limit of %v exceeded", e.Name, e.Limit)
	if e.Err != nil {
		message += ": " + e.Err.Error()
	}
	return message
}

// Is reports a match with [ErrExceeded] and context.DeadlineExceeded.
func (e *ExceededError) Is(target error) bool {
	return target == ErrExceeded || target == context.DeadlineExceeded
}

// Unwrap returns what the call returned.
func (e *ExceededError) Unwrap() error { return e.Err }

// Timeout is true: e is a timeout to package net too.
func (e *ExceededError) Timeout() bool { return true }

// Running tells whether an abandoned call still runs.
func (e *ExceededError) Running() bool { return e.work.running() }

// AfterEnd has f run once an abandoned call has ended and its value has been
// discarded; at once where nothing still runs. Otherwise f runs on the call's
// goroutine, and its panic is dropped.
func (e *ExceededError) AfterEnd(f func()) { e.work.afterEnd(f) }

// A leftError says that the caller gave up on an abandoned call, and why.
type leftError struct {
	name string
	why  error // policy.ContextError of the call's ctx
	work *work
}

func (e *leftError) Error() string {
	return fmt.Sprintf("timeout %q: call left running: %v", e.name, e.why)
}

func (e *leftError) Unwrap() error     { return e.why }
func (e *leftError) Timeout() bool     { return errors.Is(e.why, context.DeadlineExceeded) }
func (e *leftError) Running() bool     { return e.work.running() }
func (e *leftError) AfterEnd(f func()) { e.work.afterEnd(f) }
