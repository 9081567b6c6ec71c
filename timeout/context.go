package timeout

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// A callContext is the ctx of one call: the caller's, with the limit on it. While
// nobody asks for Done it is these few words and no more; then it makes a standard
// context and hands Done and Value to it, so that package context knows it for one of
// its own and hooks children up without a goroutine.
type callContext struct {
	parent  context.Context
	timeout *Timeout
	start   time.Duration // as elapsed
	limit   time.Duration // ≤ 0: none
	keeper  bool          // the limit may have to be lifted

	state    atomic.Uint32
	inner    atomic.Pointer[standard]  // set once
	deadline atomic.Pointer[time.Time] // the limit's, once it was told; on the SystemClock only
}

// The states. They are entered in this order, if at all.
const (
	live     uint32 = iota
	lifted          // live, without the limit: the value is kept
	struck          // by the limit, on a timer that could have been stopped
	finished        // the call returned, and nobody had asked for Done
)

func (t *Timeout) derive(ctx context.Context, call policy.Call, limit time.Duration) *callContext {
	_, keeper := call.(policy.Keeper)
	return &callContext{
		parent:  ctx,
		timeout: t,
		start:   t.elapsed(),
		limit:   limit,
		keeper:  keeper,
	}
}

func (c *callContext) Deadline() (time.Time, bool) {
	if c.limit <= 0 || c.state.Load() == lifted {
		return c.parent.Deadline()
	}
	ours := c.ours(c.left())
	if c.timeout.settings.system && !c.deadline.CompareAndSwap(nil, &ours) {
		ours = *c.deadline.Load()
	}
	if callers, ok := c.parent.Deadline(); ok && !ours.Before(callers) {
		return callers, true
	}
	return ours, true
}

func (c *callContext) Done() <-chan struct{} { return c.standard().Done() }

func (c *callContext) Err() error {
	s := c.inner.Load()
	if s == nil {
		switch state := c.state.Load(); {
		case state == finished:
			return context.Canceled
		case c.parent.Err() == nil && (state == lifted || !c.passed()):
			return nil
		}
		s = c.standard() // has ended already, unless the caller's own timer is late
	}
	c.settle(s)
	return s.Err()
}

func (c *callContext) Value(key any) any {
	if _, ok := key.(*int); ok { // so package context asks for the cause
		c.Err()
		if c.state.Load() == finished {
			c.standard()
		}
	}
	if s := c.inner.Load(); s != nil {
		return s.Value(key)
	}
	return c.parent.Value(key)
}

// String is for package fmt, which would read the fields without care for others.
func (c *callContext) String() string {
	return fmt.Sprintf("%v.Timeout(%q, %v)", c.parent, c.timeout.settings.name, c.limit)
}

// settle ends s if its limit has passed and only its timer is late, so that Err never
// depends on who came first, and Done, Cause and children never contradict it.
func (c *callContext) settle(s *standard) {
	if s.cause == nil || s.Err() != nil || c.state.Load() == lifted || !c.passed() {
		return
	}
	if s.tap == nil || s.tap.strike() {
		<-s.Done() // package context's own timer is due
	}
}

// exceeded is the cause if the limit has ended the context, else nil.
func (c *callContext) exceeded() *ExceededError {
	if c.Err() == nil {
		return nil
	}
	if s := c.inner.Load(); s != nil && s.cause != nil && context.Cause(s) == error(s.cause) {
		return s.cause
	}
	return nil
}

// release ends the context of a call that has returned, or has the value end it. A
// value that is kept is not under the limit any more.
func (c *callContext) release(call policy.Call, value any) {
	if c.keeper && value != nil {
		kept := false
		defer func() {
			if !kept {
				c.finish()
			}
		}()
		c.lift()
		kept = call.(policy.Keeper).Keep(value, c.finish)
		return
	}
	c.finish()
}

// lift takes the limit off, unless it has struck.
func (c *callContext) lift() {
	if !c.state.CompareAndSwap(live, lifted) {
		return
	}
	if s := c.inner.Load(); s != nil {
		s.tap.stop()
	}
}

// finish cancels the context and frees what it holds. It may be called again.
func (c *callContext) finish() {
	if c.inner.Load() == nil && !c.state.CompareAndSwap(live, finished) {
		c.state.CompareAndSwap(lifted, finished)
	}
	if s := c.inner.Load(); s != nil { // perhaps made meanwhile
		s.cancel()
	}
}

// standard returns inner, and makes it when first asked.
func (c *callContext) standard() *standard {
	if s := c.inner.Load(); s != nil {
		return s
	}
	s := c.newStandard()
	if !c.inner.CompareAndSwap(nil, s) {
		s.cancel()
		return c.inner.Load()
	}
	switch c.state.Load() { // lift and finish look at inner after they have set the state
	case lifted:
		s.tap.stop()
	case finished:
		s.cancel()
	}
	return s
}

// newStandard decides whose end comes first, the caller's or the limit's.
func (c *callContext) newStandard() *standard {
	switch state := c.state.Load(); {
	case state == finished:
		return following(context.WithoutCancel(c.parent))
	case state == lifted || c.limit <= 0:
		return following(c.parent)
	}
	callers, ok := c.parent.Deadline()
	plain := c.timeout.settings.system && !c.keeper
	exact := plain && (!ok || monotonic(callers))
	var left time.Duration
	var ours time.Time
	if exact { // no need to look at the clock
		ours = began.Add(saturated(c.start, c.limit))
	} else {
		left = c.left()
		ours = c.ours(left)
	}
	if ok && !ours.Before(callers) {
		return following(c.parent)
	}
	switch err := c.parent.Err(); {
	case err == nil && plain:
		return c.arm(ours)
	case err == nil && left > 0:
		return c.armTapped(left)
	case err == nil, ok && err == context.DeadlineExceeded: // ours was the earlier
		cause := c.cause()
		return &standard{Context: expired(c.parent, cause), cancel: func() {}, cause: cause}
	default: // a cancellation: it may have come before the limit, so it has
		return following(c.parent)
	}
}

// arm leaves the timer to package context.
func (c *callContext) arm(deadline time.Time) *standard {
	s := &standard{cause: c.cause()}
	s.Context, s.cancel = context.WithDeadlineCause(c.parent, deadline, s.cause)
	return s
}

// armTapped sets a timer that can be stopped by itself.
func (c *callContext) armTapped(left time.Duration) *standard {
	s := &standard{cause: c.cause(), tap: &tap{Clock: c.timeout.settings.clock, state: &c.state}}
	s.Context, s.cancel = policy.WithTimeout(c.parent, s.tap, left, s.cause)
	if s.tap.timer == nil { // meanwhile, the caller's deadline is the earlier
		s.cause, s.tap = nil, nil
	}
	return s
}

// ours is the limit's deadline, with left before it. left was read before the clock's
// Now is: in doubt, the caller's deadline is the earlier.
func (c *callContext) ours(left time.Duration) time.Time {
	if deadline := c.deadline.Load(); deadline != nil {
		return *deadline
	}
	return c.timeout.settings.clock.Now().Add(left)
}

// cause is shared by the calls of a fixed limit.
func (c *callContext) cause() *ExceededError {
	if c.timeout.cause.Limit == c.limit {
		return c.timeout.cause
	}
	return &ExceededError{Name: c.timeout.settings.name, Limit: c.limit}
}

func (c *callContext) passed() bool { return c.limit > 0 && c.left() <= 0 }

func (c *callContext) left() time.Duration { return c.limit - c.spent() }

// spent is never negative, so that no limit less it overflows.
func (c *callContext) spent() time.Duration { return max(0, c.timeout.elapsed()-c.start) }
