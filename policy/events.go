package policy

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Kind says what an [Event] tells.
type Kind string

// The kinds of events. Each occurrence is told exactly once.
const (
	CallDone          Kind = "call.done"             // a pipeline answered a call
	AttemptDone       Kind = "attempt.done"          // a retry's attempt ended
	RetryScheduled    Kind = "retry.scheduled"       // another attempt follows after Delay
	RetryExhausted    Kind = "retry.exhausted"       // a retry gives up
	TimeoutExceeded   Kind = "timeout.exceeded"      // a call outlasted its limit
	TimeoutAbandoned  Kind = "timeout.abandoned"     // a call was left running
	CallPanicked      Kind = "call.panicked"         // an abandoned call panicked
	CircuitRejected   Kind = "circuit.rejected"      // a breaker refused a call
	CircuitChanged    Kind = "circuit.state_changed" // a breaker moved From a state To another
	BulkheadQueued    Kind = "bulkhead.queued"       // a call waits for a slot
	BulkheadRejected  Kind = "bulkhead.rejected"     // a bulkhead refused a call
	RateLimitDelayed  Kind = "ratelimit.delayed"     // a call waits for a token for Delay
	RateLimitRejected Kind = "ratelimit.rejected"    // a limiter refused a call
	FallbackUsed      Kind = "fallback.used"         // a fallback answered
	FallbackFailed    Kind = "fallback.failed"       // a fallback failed too
)

// An Event is something that happened in a policy or a pipeline. Fields that do not
// apply are zero.
type Event struct {
	Kind     Kind
	Time     time.Time     // by the policy's clock, for showing
	Pipeline string        // where the event is a pipeline's own
	Policy   string        // "breaker"
	Name     string        // "payments"
	Attempt  int           // 1-based
	Outcome  Outcome       // of the call or attempt
	Reason   string        // of a transition or refusal, for people
	Err      error         // of the call or attempt, or the refusal
	Duration time.Duration // how long the call or attempt took
	Delay    time.Duration // a wait that is about to begin, or the open period
	From, To string        // states
}

// LogValue has package slog show the fields that apply, by name.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("kind", string(e.Kind))}
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	text("pipeline", e.Pipeline)
	text("policy", e.Policy)
	text("name", e.Name)
	if e.Attempt > 0 {
		attrs = append(attrs, slog.Int("attempt", e.Attempt))
	}
	if e.Outcome != 0 {
		text("outcome", e.Outcome.String())
	}
	text("from", e.From)
	text("to", e.To)
	text("reason", e.Reason)
	if e.Err != nil {
		text("err", e.Err.Error())
	}
	if e.Duration > 0 {
		attrs = append(attrs, slog.Duration("duration", e.Duration))
	}
	if e.Delay > 0 {
		attrs = append(attrs, slog.Duration("delay", e.Delay))
	}
	return slog.GroupValue(attrs...)
}

// An Observer is told events, on the goroutine of the call that caused them and
// with its ctx. It must be safe for concurrent use, and quick: the call waits for it.
// No lock is held, so it may call back into the policy. Its panic harms no policy and
// hides no event from others, but reaches the caller in place of the call's result.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc is a function as an [Observer].
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// An Observable tells events to whoever subscribes. Cancel ends the subscription;
// calling it again does nothing.
type Observable interface {
	Subscribe(o Observer) (cancel func())
}

// Events is an [Observable] to hold in a policy's field. The zero value is ready to
// use. It is safe for concurrent use, and must not be copied. While nobody listens, it
// costs one atomic load.
type Events struct {
	list atomic.Pointer[[]*subscription] // nil while nobody listens; never changed in place

	mu sync.Mutex // serializes changes of list
}

// subscription gives each Subscribe an identity, for its cancel to find.
type subscription struct{ Observer }

// Subscribe has every later event told to o. It panics if o is nil.
func (e *Events) Subscribe(o Observer) (cancel func()) {
	if o == nil {
		panic("policy: Subscribe(nil): must not be nil")
	}
	s := &subscription{o}
	e.change(func(list []*subscription) []*subscription { return append(list, s) })
	return func() {
		e.change(func(list []*subscription) []*subscription {
			return slices.DeleteFunc(list, func(other *subscription) bool { return other == s })
		})
	}
}

func (e *Events) change(edit func([]*subscription) []*subscription) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []*subscription
	if old := e.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	if list = edit(list); len(list) == 0 {
		e.list.Store(nil)
		return
	}
	e.list.Store(&list)
}

// Observed tells whether anybody listens: if not, there is no need to build an
// event.
func (e *Events) Observed() bool { return e.list.Load() != nil }

// Emit tells event to every observer, in the order of subscription. A zero Time is
// set to the system's. An observer that panics hides nothing from the others: its
// panic goes on once they have been told.
func (e *Events) Emit(ctx context.Context, event Event) {
	list := e.list.Load()
	if list == nil {
		return
	}
	if event.Time.IsZero() {
		event.Time = SystemClock.Now()
	}
	tell(ctx, event, *list)
}

func tell(ctx context.Context, event Event, list []*subscription) {
	told := 0
	defer func() {
		if told < len(list) { // list[told] panicked, or ended its goroutine
			tell(ctx, event, list[told+1:])
		}
	}()
	for ; told < len(list); told++ {
		list[told].Observe(ctx, event)
	}
}
