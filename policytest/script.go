package policytest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// A Step is one answer of a [Script]: made by [Return], [Fail], [Block] or [Panic].
type Step struct {
	answer func(ctx context.Context, c *Clock) (any, error)
	after  time.Duration
}

// Return answers with v and no error.
func Return(v any) Step {
	return Step{answer: func(context.Context, *Clock) (any, error) { return v, nil }}
}

// Fail answers with err and no value.
func Fail(err error) Step {
	return Step{answer: func(context.Context, *Clock) (any, error) { return nil, err }}
}

// Block waits until ctx ends, and answers with [policy.ContextError]. On a clock, it
// moves time from timer to timer until then.
func Block() Step { return Step{answer: block} }

// Panic panics with v.
func Panic(v any) Step {
	return Step{answer: func(context.Context, *Clock) (any, error) { panic(v) }}
}

// After is the step, taking d before it does what it does, without a look at ctx: an
// answer that is slow and not to be hurried. It sleeps, which takes no real time in a
// synctest bubble, or moves the clock: see [Scripted.On]. It panics if d < 0.
func (s Step) After(d time.Duration) Step {
	if d < 0 {
		panic(fmt.Sprintf("policytest: After(%v): must be at least 0", d))
	}
	s.after = d
	return s
}

// Scripted is a [policy.Call] that answers step by step. It is safe for concurrent
// use: steps are given out in the order in which calls begin.
type Scripted struct {
	steps []Step
	clock *Clock
	calls atomic.Int64
}

// Script makes a call that answers with the first step, then with the second, and
// with the last one for ever. It panics without steps.
func Script(steps ...Step) *Scripted {
	if len(steps) == 0 {
		panic("policytest: Script(): must have at least one step")
	}
	return &Scripted{steps: slices.Clone(steps)}
}

// On has the script move c: After(d) advances it by d, and Block until ctx ends. So a
// test on one goroutine can have a call that takes three seconds. It returns s, and
// must come before the first call.
func (s *Scripted) On(c *Clock) *Scripted {
	s.clock = c
	return s
}

// Invoke implements [policy.Call].
func (s *Scripted) Invoke(ctx context.Context) (any, error) {
	step := s.steps[min(s.calls.Add(1), int64(len(s.steps)))-1]
	if s.clock != nil {
		s.clock.Advance(step.after)
	} else {
		time.Sleep(step.after)
	}
	return step.answer(ctx, s.clock)
}

// Calls is how often the call has been invoked, running calls included.
func (s *Scripted) Calls() int { return int(s.calls.Load()) }

func block(ctx context.Context, c *Clock) (any, error) {
	for c != nil && ctx.Err() == nil {
		d, ok := c.untilNext()
		if !ok {
			break
		}
		c.Advance(d)
	}
	<-ctx.Done()
	return nil, policy.ContextError(ctx)
}
