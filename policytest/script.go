package policytest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// A Step is one answer of a [Script]: made by [Return], [Fail], [Block] or [Panic].
// The zero Step is Return(nil).
type Step struct {
	value  any
	err    error
	ends   func(s *Scripted, ctx context.Context, step Step) (any, error) // nil: return value and err
	begins time.Duration
}

// Return answers with v and no error.
func Return(v any) Step { return Step{value: v} }

// Fail answers with err and no value.
func Fail(err error) Step { return Step{err: err} }

// Block waits until ctx ends, and answers with [policy.ContextError]. See
// [Scripted.On] for what it does on a clock.
func Block() Step { return Step{ends: (*Scripted).block} }

// Panic panics with v.
func Panic(v any) Step {
	return Step{value: v, ends: func(_ *Scripted, _ context.Context, step Step) (any, error) { panic(step.value) }}
}

// After has the step take d before it does what it does, without a look at ctx, as
// time.Sleep would: a Return or Fail that is slow and not to be hurried. In a synctest
// bubble it takes no real time; [Scripted.On] makes it a clock's. It panics if d < 0.
func (s Step) After(d time.Duration) Step {
	if d < 0 {
		panic(fmt.Sprintf("policytest: After(%v): must be at least 0", d))
	}
	s.begins = d
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
	return &Scripted{steps: append([]Step(nil), steps...)}
}

// On has the script run on c: a step's After advances c, and Block advances it from
// timer to timer until ctx ends. So a test on one goroutine can have a call that takes
// three seconds. It returns s, and must precede the first call.
func (s *Scripted) On(c *Clock) *Scripted {
	s.clock = c
	return s
}

// Invoke implements [policy.Call].
func (s *Scripted) Invoke(ctx context.Context) (any, error) {
	step := s.steps[min(int(s.calls.Add(1)), len(s.steps))-1]
	s.take(step.begins)
	if step.ends != nil {
		return step.ends(s, ctx, step)
	}
	return step.value, step.err
}

// Calls is how often the call has been invoked, running calls included.
func (s *Scripted) Calls() int { return int(s.calls.Load()) }

// take lets d pass.
func (s *Scripted) take(d time.Duration) {
	switch {
	case d == 0:
	case s.clock != nil:
		s.clock.Advance(d)
	default:
		time.Sleep(d)
	}
}

func (s *Scripted) block(ctx context.Context, _ Step) (any, error) {
	for s.clock != nil && ctx.Err() == nil {
		d, ok := s.clock.untilNext()
		if !ok {
			break
		}
		s.clock.Advance(d)
	}
	<-ctx.Done()
	return nil, policy.ContextError(ctx)
}
