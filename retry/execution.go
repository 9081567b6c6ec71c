package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/policy"
)

// An execution is one call on its way through its attempts. It belongs to the call's
// goroutine.
type execution struct {
	settings *settings
	events   *policy.Events
	ctx      context.Context // the caller's
	next     policy.Handler
	call     policy.Call
	begin    time.Duration // when the call began
	delays   delays

	number int   // of the attempt at hand
	ran    int   // attempts that no policy refused
	last   error // the last error of those

	value   any  // of the attempt at hand
	held    bool // value has neither reached the caller nor been discarded
	err     error
	outcome policy.Outcome
	wish    time.Duration // the call's, as a Judge
	repeat  bool          // the outcome calls for another attempt, and allows it
}

// finish makes the attempts that follow the one at hand, and answers.
func (e *execution) finish() (any, error) {
	for e.repeat {
		delay, cause := e.delay()
		if cause != nil {
			return e.giveUp(cause)
		}
		e.announce(delay)
		e.discard() // before the wait, which may be long
		if cause := policy.Sleep(e.ctx, e.settings.clock, delay); cause != nil {
			return e.giveUp(cause)
		}
		e.attempt()
	}
	if e.err != nil && e.number > 1 {
		return e.giveUp(e.cause())
	}
	e.held = false
	return e.value, e.err
}

func (e *execution) attempt() {
	e.number++
	e.err, e.outcome = nil, policy.Failure // of a panic
	ctx := withAttempt(e.ctx, e.number)
	if e.events.Observed() {
		e.observed(ctx)
		return
	}
	e.judge(e.next(ctx, e.call))
}

// observed makes an attempt and tells of its end, also where the call or a classifier
// panics.
func (e *execution) observed(ctx context.Context) {
	begin, returned := e.settings.clock.Elapsed(), false
	tell := func() {
		e.tell(policy.Event{
			Kind: policy.AttemptDone, Attempt: e.number, Err: e.err,
			Duration: e.settings.clock.Elapsed() - begin,
		})
	}
	defer func() {
		if !returned {
			guard.Quiet(tell)
		}
	}()
	e.judge(e.next(ctx, e.call))
	returned = true
	tell()
}

// judge takes what the attempt brought, and decides whether to repeat it.
func (e *execution) judge(value any, err error) {
	e.value, e.held, e.err = value, true, err
	e.wish, e.repeat = 0, false
	if policy.Rejected(err) {
		e.outcome = policy.Ignored
		return
	}
	e.ran++
	if err != nil {
		e.last = err
	}
	classify := e.settings.classify
	e.outcome = policy.Judgement(classify, e.call, value, err)
	wanted := e.outcome == policy.Failure
	if j, ok := e.call.(policy.Judge); ok {
		var again bool
		e.wish, again = j.Again(value, err)
		wanted = again && (wanted || classify == nil)
	}
	e.repeat = wanted && !isPermanent(err) && e.ctx.Err() == nil
}

// delay is the wait before the next attempt, or why there is none.
func (e *execution) delay() (time.Duration, error) {
	s := e.settings
	if e.number >= s.attempts {
		return 0, ErrAttempts
	}
	if e.number == 1 { // now that a backoff is needed
		e.delays = s.newDelays()
	}
	delay, ok := e.delays.next(rand.Uint64N)
	wish := max(e.wish, wishOf(e.err))
	delay = max(delay, wish)
	switch {
	case !ok:
		return 0, ErrStopped
	case wish > s.maxRetryAfter:
		return 0, ErrRetryAfter
	case s.maxElapsed != unlimited && delay > s.maxElapsed-e.elapsed():
		return 0, ErrElapsed
	case delay > 0 && policy.Outlasts(e.ctx, s.clock, delay):
		return 0, errDeadline
	default:
		return delay, nil
	}
}

// announce tells of the attempt to come, while the value of the one at hand is whole.
func (e *execution) announce(delay time.Duration) {
	if e.events.Observed() {
		e.tell(policy.Event{Kind: policy.RetryScheduled, Attempt: e.number, Err: e.err, Delay: delay})
	}
	if f := e.settings.onRetry; f != nil {
		f(e.ctx, Attempt{Number: e.number, Value: e.value, Err: e.err, Delay: delay, Elapsed: e.elapsed()})
	}
}

// giveUp answers after a failure: with a value as it is, or else with the verdict.
func (e *execution) giveUp(cause error) (any, error) {
	var err error
	if e.err != nil || !e.held { // a wait was cut, and the value is gone
		err = &ExhaustedError{
			Name: e.settings.name, Attempts: e.ran, Elapsed: e.elapsed(), Cause: cause, Last: e.last,
		}
	}
	if e.events.Observed() {
		e.tell(policy.Event{
			Kind: policy.RetryExhausted, Attempt: e.number, Err: err,
			Reason: reason(cause), Duration: e.elapsed(),
		})
	}
	e.held = false
	return e.value, err
}

// cause is what ended the retries with an error that is not to be repeated.
func (e *execution) cause() error {
	if e.ran < e.number { // refused
		return e.err
	}
	return policy.ContextError(e.ctx)
}

func (e *execution) tell(event policy.Event) {
	event.Policy, event.Name, event.Time = kind, e.settings.name, e.settings.clock.Now()
	event.Outcome = e.outcome
	e.events.Emit(e.ctx, event)
}

func (e *execution) elapsed() time.Duration {
	return max(0, e.settings.clock.Elapsed()-e.begin)
}

func (e *execution) discard() {
	value := e.value
	e.value, e.held = nil, false
	policy.Discard(e.call, value)
}

// release frees the value at hand where the panic of a callback keeps it from the
// caller.
func (e *execution) release() {
	if e.held {
		e.discard()
	}
}

func isPermanent(err error) bool {
	if _, ok := errors.AsType[*permanent](err); ok {
		return true
	}
	_, ok := errors.AsType[*backoff.PermanentError](err)
	return ok
}

// wishOf is how long err asks us to wait. A refusal that is part of another policy's
// verdict, such as an inner retry's, speaks for that policy and not for the call.
func wishOf(err error) time.Duration {
	asks, ok := errors.AsType[interface {
		error
		RetryAfter() (time.Duration, bool)
	}](err)
	if !ok || errors.Is(asks, policy.ErrRejected) {
		return 0
	}
	if wait, ok := asks.RetryAfter(); ok {
		return wait
	}
	return 0
}
