package holdfasthttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// callerOf is the context of req, made to end with the channel Cancel too: that is how
// an http.Client with a Timeout, besides a deadline, ends a request over a transport that
// it does not know. If the channel is first, policies would take its error for the
// server's. Unwatch is nil where there is nothing to watch.
func callerOf(req *http.Request) (ctx context.Context, unwatch func()) {
	ended := req.Cancel //lint:ignore SA1019 http.Client uses it
	if ended == nil {
		return req.Context(), nil
	}
	return endingWith(req.Context(), ended)
}

func endingWith(parent context.Context, ended <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		select {
		case <-ended:
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 0 {
				cancel()
			} // or else the deadline does, and says that it did
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// An exchange is the context of one request and its response. It ends with the caller,
// and until the header is there with the attempt, so that no policy's timeout cuts the
// body. Whoever reads the body ends it.
type exchange struct {
	ctx     context.Context // the request's
	attempt context.Context // as the policies gave it
	caller  context.Context
	until   context.Context // whose end is the exchange's: the attempt, later the caller
	cancel  context.CancelCauseFunc
	unhook  func() bool // from the attempt's end; nil where that is the caller's
	sent    *attemptBody
}

func begin(attempt, caller context.Context, sent *attemptBody) *exchange {
	x := &exchange{attempt: attempt, caller: caller, until: attempt, sent: sent}
	if attempt.Done() == caller.Done() {
		x.ctx, x.cancel = context.WithCancelCause(attempt)
		return x
	}
	ctx, cancel := context.WithCancelCause(caller)
	x.ctx, x.cancel = &attemptContext{ctx, attempt}, cancel
	x.unhook = context.AfterFunc(attempt, func() { cancel(policy.ContextError(attempt)) })
	return x
}

// establish is called when the header is there. It reports false where the attempt has
// ended before.
func (x *exchange) establish() bool {
	if x.unhook != nil && !x.unhook() {
		return false
	}
	x.until = x.caller
	return true
}

// end frees what the exchange holds. It may be called again. Not every base transport
// closes what it has sent.
func (x *exchange) end() {
	if x.unhook != nil {
		x.unhook()
	}
	x.cancel(nil)
	x.sent.Close()
}

// explain makes sure that an error of an exchange that was cut says by what, and why. A
// base transport tells the context's Err or its cause, and seldom both.
func (x *exchange) explain(err error) error {
	ended := policy.ContextError(x.until)
	switch {
	case ended == nil, errors.Is(err, x.until.Err()) && errors.Is(err, context.Cause(x.until)):
		return err
	case errors.Is(err, context.Canceled), errors.Is(ended, err): // err says no more
		return ended
	default:
		return fmt.Errorf("%w: %w", ended, err)
	}
}

// attemptContext is a standard context below the caller's, with the attempt's values, and
// its deadline, which package net divides among the addresses of a host.
type attemptContext struct {
	context.Context

	attempt context.Context
}

func (c *attemptContext) Deadline() (time.Time, bool) { return c.attempt.Deadline() }

func (c *attemptContext) Value(key any) any {
	if _, ok := key.(*int); ok { // package context looks for what ends its children
		return c.Context.Value(key)
	}
	return c.attempt.Value(key)
}
