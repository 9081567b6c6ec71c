package retry

import (
	"context"
	"time"
)

// An Attempt is one that failed and is about to be repeated: see [OnRetry].
type Attempt struct {
	Number  int           // from 1
	Value   any           // discarded once OnRetry has returned
	Err     error         // nil where the value was called a failure
	Delay   time.Duration // the wait before the next attempt
	Elapsed time.Duration // since the call began
}

// AttemptFrom returns the number, from 1, of the attempt that ctx was made for: the
// nearest retry's. It is 1 where there is none.
func AttemptFrom(ctx context.Context) int {
	if a, ok := ctx.Value(attemptKey{}).(*attemptContext); ok {
		return a.number
	}
	return 1
}

// withAttempt is ctx where it says number already, as most do for the first attempt.
func withAttempt(ctx context.Context, number int) context.Context {
	if AttemptFrom(ctx) == number {
		return ctx
	}
	return &attemptContext{Context: ctx, number: number}
}

type attemptKey struct{}

// attemptContext is context.WithValue in one allocation. Each attempt has its own:
// the call may keep it.
type attemptContext struct {
	context.Context

	number int
}

func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c // a pointer: the number would be boxed
	}
	return c.Context.Value(key)
}
