package timeout

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/policy"
)

// A result is how a call on its own goroutine ended.
type result struct {
	value    any
	err      error
	returned bool // false: a panic, or Goexit where panicked is nil
	panicked any
}

// work is a call on its own goroutine, as seen by those who wait for its end.
type work struct {
	mu        sync.Mutex
	answered  bool // the result goes to the caller, or the caller has left
	abandoned bool
	over      bool
	after     []func()
}

// abandonable runs the call on a goroutine of its own, and answers with its result,
// or at the end of its ctx.
func (t *Timeout) abandonable(ctx context.Context, next policy.Handler, call policy.Call, limit time.Duration) (any, error) {
	c, w := t.derive(ctx, call, limit), &work{}
	results := make(chan result, 1)
	go t.perform(c, w, next, call, results)
	select {
	case r := <-results:
		return t.deliver(c, call, r)
	case <-c.Done():
	}
	if !w.abandon(t) { // it has ended at this very moment
		return t.deliver(c, call, <-results)
	}
	return nil, t.leave(c, w)
}

// perform runs the call and hands its result to whoever is to have it.
func (t *Timeout) perform(c *callContext, w *work, next policy.Handler, call policy.Call, results chan<- result) {
	var r result
	defer func() {
		if !r.returned {
			r.panicked = recover()
		}
		if w.deliver() {
			results <- r
			return
		}
		defer w.end(t)
		t.bury(c, call, r)
	}()
	r.value, r.err = next(c, call)
	r.returned = true
}

// deliver ends the call as if it had run on the caller's goroutine.
func (t *Timeout) deliver(c *callContext, call policy.Call, r result) (any, error) {
	if r.returned {
		return t.conclude(c, call, r.value, r.err)
	}
	t.broken(c)
	if r.panicked == nil {
		runtime.Goexit()
	}
	panic(r.panicked)
}

// leave answers for a call that still runs.
func (t *Timeout) leave(c *callContext, w *work) error {
	cause := c.exceeded()
	c.finish()
	if cause == nil {
		err := &leftError{name: t.settings.name, why: policy.ContextError(c), work: w}
		t.tell(c, policy.Event{Kind: policy.TimeoutAbandoned, Outcome: policy.Ignored, Err: err})
		return err
	}
	err := &ExceededError{Name: cause.Name, Limit: cause.Limit, work: w}
	defer t.tell(c, policy.Event{Kind: policy.TimeoutAbandoned, Outcome: policy.Failure, Err: err})
	t.tell(c, policy.Event{Kind: policy.TimeoutExceeded, Outcome: policy.Failure, Err: err})
	return err
}

// bury takes care of a result that comes too late. Nobody stands above this goroutine,
// so a panic of those who are told would end the process.
func (t *Timeout) bury(c *callContext, call policy.Call, r result) {
	guard.Quiet(func() {
		switch {
		case r.returned:
			policy.Discard(call, r.value)
		case r.panicked != nil:
			t.tell(c, policy.Event{
				Kind: policy.CallPanicked, Outcome: policy.Failure,
				Err: panicError(r.panicked), Reason: string(debug.Stack()), // unwound after this
			})
		}
	})
}

func panicError(value any) error {
	if err, ok := value.(error); ok {
		return fmt.Errorf("panic: %w", err)
	}
	return fmt.Errorf("panic: %v", value)
}

// deliver reports whether the caller is still there for the result.
func (w *work) deliver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = true
	return !w.abandoned
}

// abandon reports false if the result is on its way to the caller.
func (w *work) abandon(t *Timeout) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered {
		return false
	}
	w.abandoned = true
	t.abandoned.Add(1)
	return true
}

// end runs what waits for the end.
func (w *work) end(t *Timeout) {
	w.mu.Lock()
	after := w.after
	w.over, w.after = true, nil
	w.mu.Unlock()
	t.abandoned.Add(-1)
	runAll(after)
}

// runAll runs each of fs, whatever the others do.
func runAll(fs []func()) {
	if len(fs) == 0 {
		return
	}
	defer runAll(fs[1:])
	guard.Quiet(fs[0])
}

// running is false for no work at all.
func (w *work) running() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.over
}

func (w *work) afterEnd(f func()) {
	if !w.wait(f) {
		f()
	}
}

// wait reports false if there is nothing to wait for.
func (w *work) wait(f func()) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	w.after = append(w.after, f)
	return true
}
