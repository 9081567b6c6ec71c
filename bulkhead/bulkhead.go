package bulkhead

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast/policy"
)

// A Bulkhead is a [policy.Policy] that bounds how many calls run at the same time.
// It is safe for concurrent use, and must not be copied. A free slot costs some 20 ns
// more than a bare semaphore of golang.org/x/sync, and allocates nothing.
//
// A slot follows the work: a call that goes on after its caller was answered, as
// under timeout.Abandon, holds it until it ends, and so does a value that the call,
// a [policy.Keeper], keeps, until it is released.
type Bulkhead struct {
	settings settings
	events   policy.Events
	rejected atomic.Uint64

	// slots carries the slots, and the queue of those who wait for one.
	slots *semaphore.Weighted
	// inside is how many hold a slot or wait for one. It rises before a slot is taken and
	// falls after it was given back, so there is a slot for each of the first limit. The
	// semaphore alone would not do: those whom it has served count as waiting until
	// they run, and would keep others out of the queue.
	inside atomic.Int64
}

// Stats is a snapshot of a [Bulkhead].
type Stats struct {
	Limit    int    // slots there are
	InFlight int    // slots taken
	Queued   int    // calls that wait
	MaxQueue int    // calls that may wait
	Rejected uint64 // calls refused with a FullError so far
}

// New makes a bulkhead with limit ≥ 1 slots. It panics on a bad setting, with all faults
// in one message.
func New(limit int, opts ...Option) *Bulkhead {
	b, err := build(limit, opts)
	if err != nil {
		panic(err.Error())
	}
	return b
}

// Build is [New] with an error instead of a panic.
func Build(limit int, opts ...Option) (*Bulkhead, error) { return build(limit, opts) }

// Wrap implements [policy.Policy].
func (b *Bulkhead) Wrap(next policy.Handler) policy.Handler {
	return func(ctx context.Context, call policy.Call) (any, error) {
		if ctx.Err() != nil {
			return nil, policy.ContextError(ctx)
		}
		if err := b.enter(ctx); err != nil {
			return nil, err
		}
		held := true
		defer func() {
			if held {
				b.release()
			}
		}()
		value, err := next(ctx, call)
		if keeper, ok := call.(policy.Keeper); ok && value != nil || err != nil && unfinished(err) {
			held = false
			b.passOn(keeper, value, err)
		}
		return value, err
	}
}

// Acquire takes a slot by hand, under the same terms as a call in a pipeline: it
// waits if MaxQueue allows, and returns a [FullError] or [policy.ContextError] if it
// gets none. Release gives the slot back; calling it again does nothing. Unlike a call
// in a pipeline, Acquire allocates.
func (b *Bulkhead) Acquire(ctx context.Context) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, policy.ContextError(ctx)
	}
	if err := b.enter(ctx); err != nil {
		return nil, err
	}
	return (&slot{of: b}).release, nil
}

// Name is the name that events, errors and descriptions carry.
func (b *Bulkhead) Name() string { return b.settings.name }

// Stats reads the numbers as they are now. It costs two atomic loads.
func (b *Bulkhead) Stats() Stats {
	limit, inside := b.settings.limit, int(b.inside.Load())
	return Stats{
		Limit:    limit,
		InFlight: min(inside, limit),
		Queued:   max(0, inside-limit),
		MaxQueue: b.settings.maxQueue,
		Rejected: b.rejected.Load(),
	}
}

// Describe implements [policy.Describer].
func (b *Bulkhead) Describe() policy.Description {
	params := []slog.Attr{slog.Int("limit", b.settings.limit), slog.Int("max_queue", b.settings.maxQueue)}
	if b.settings.maxWait != forever {
		params = append(params, slog.Duration("max_wait", b.settings.maxWait))
	}
	return policy.Description{Kind: kind, Name: b.settings.name, Params: params}
}

// Subscribe implements [policy.Observable]: bulkhead.queued and bulkhead.rejected.
func (b *Bulkhead) Subscribe(o policy.Observer) (cancel func()) { return b.events.Subscribe(o) }

// enter takes a slot, and waits for one where that is allowed.
func (b *Bulkhead) enter(ctx context.Context) error {
	for {
		n := b.inside.Load()
		if n >= b.settings.room {
			return b.refuse(ctx, n, "no place in the queue")
		}
		if b.inside.CompareAndSwap(n, n+1) {
			break
		}
	}
	if b.slots.TryAcquire(1) { // not if anybody waits
		return nil
	}
	return b.wait(ctx)
}

// wait waits for a slot in the semaphore's queue. A slot that is granted at the very
// moment the wait ends is passed on by the semaphore.
func (b *Bulkhead) wait(ctx context.Context) error {
	served := false
	defer func() {
		if !served {
			b.inside.Add(-1)
		}
	}()
	b.tell(ctx, policy.Event{Kind: policy.BulkheadQueued})
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if b.settings.maxWait != forever {
		bounded, cancel = policy.WithTimeout(ctx, b.settings.clock, b.settings.maxWait, nil)
	}
	defer cancel()
	if b.slots.Acquire(bounded, 1) == nil {
		served = true
		return nil
	}
	if ctx.Err() != nil {
		return policy.ContextError(ctx)
	}
	return b.refuse(ctx, b.inside.Load()-1, "no slot within "+b.settings.maxWait.String())
}

// release gives a slot back, to the first in the queue if there is one.
func (b *Bulkhead) release() {
	b.slots.Release(1)
	b.inside.Add(-1)
}

// refuse answers a call that was denied a slot with so many others inside.
func (b *Bulkhead) refuse(ctx context.Context, inside int64, reason string) error {
	b.rejected.Add(1)
	limit := b.settings.limit
	err := &FullError{Name: b.settings.name, Limit: limit, InFlight: limit, Queued: max(0, int(inside)-limit)}
	b.tell(ctx, policy.Event{Kind: policy.BulkheadRejected, Err: err, Reason: reason})
	return err
}

func (b *Bulkhead) tell(ctx context.Context, event policy.Event) {
	if b.events.Observed() {
		event.Policy, event.Name, event.Time = kind, b.settings.name, b.settings.clock.Now()
		b.events.Emit(ctx, event)
	}
}

// unfinished looks before passOn does, which allocates: most errors are of calls that
// have ended.
func unfinished(err error) bool {
	_, ok := errors.AsType[policy.Unfinished](err)
	return ok
}

// passOn offers the slot to whoever goes on with the call's work: its value, or the
// call itself where it still runs. Where nobody takes it, or the offer panics, it is
// given back. The keeper is nil if the call is none.
func (b *Bulkhead) passOn(keeper policy.Keeper, value any, err error) {
	s := &slot{of: b}
	taken := false
	defer func() {
		if !taken {
			s.release()
		}
	}()
	taken = keeper != nil && value != nil && keeper.Keep(value, s.release) ||
		err != nil && policy.AfterEnd(err, s.release)
}

// A slot is one that was taken, in the hands of somebody who may give it back twice.
type slot struct {
	of       *Bulkhead
	released atomic.Bool
}

func (s *slot) release() {
	if s.released.CompareAndSwap(false, true) {
		s.of.release()
	}
}
