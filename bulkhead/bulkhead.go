package bulkhead

import (
	"context"
	"errors"
	"log/slog"
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast/policy"
)

// A Bulkhead is a [policy.Policy] that bounds how many calls run at the same time.
// It is safe for concurrent use, and must not be copied. While a slot is free, a call
// costs little more than a semaphore of golang.org/x/sync, and allocates nothing.
//
// A slot follows the work: a call that goes on after its caller was answered, as
// under timeout.Abandon, holds it until it ends, and so does a value that the call,
// a [policy.Keeper], keeps, until it is released.
type Bulkhead struct {
	settings settings
	slots    *semaphore.Weighted // the slots, and the line of those that wait for one
	events   policy.Events

	mu       sync.Mutex // guards the fields below; not held during a wait
	queued   int
	rejected uint64
}

// New makes a bulkhead with limit ≥ 1 slots. It panics on a bad setting.
func New(limit int, opts ...Option) *Bulkhead {
	b, err := build(limit, opts)
	if err != nil {
		panic(err.Error())
	}
	return b
}

// Build is [New] with an error for a bad setting.
func Build(limit int, opts ...Option) (*Bulkhead, error) { return build(limit, opts) }

// Wrap implements [policy.Policy].
func (b *Bulkhead) Wrap(next policy.Handler) policy.Handler {
	slots := b.slots
	return func(ctx context.Context, call policy.Call) (any, error) {
		if ctx.Err() != nil || !slots.TryAcquire(1) {
			if err := b.enter(ctx); err != nil {
				return nil, err
			}
		}
		held := true
		defer func() {
			if held {
				slots.Release(1)
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
// gets none. Release gives the slot back; calling it again does nothing.
func (b *Bulkhead) Acquire(ctx context.Context) (release func(), err error) {
	if ctx.Err() != nil || !b.slots.TryAcquire(1) {
		if err := b.enter(ctx); err != nil {
			return nil, err
		}
	}
	return (&slot{of: b.slots}).release, nil
}

// Name is the name that events, errors and descriptions carry.
func (b *Bulkhead) Name() string { return b.settings.name }

// Stats is a snapshot of a [Bulkhead].
type Stats struct {
	Limit    int
	InFlight int // slots taken
	Queued   int // calls that wait; one that was handed its slot counts until it wakes
	MaxQueue int
	Rejected uint64 // calls refused with a FullError so far
}

// Stats reads the numbers as they are now. It costs some 10 ns for each binary
// digit of the limit; calls that begin meanwhile wait for it.
func (b *Bulkhead) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{
		Limit:    b.settings.limit,
		InFlight: b.settings.limit - b.freeLocked(),
		Queued:   b.queued,
		MaxQueue: b.settings.maxQueue,
		Rejected: b.rejected,
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

// enter takes a slot, and waits for one where that is allowed. It tries under the
// lock before it believes that there is none: an earlier try may have met a reader of
// Stats with the free ones in its hands.
func (b *Bulkhead) enter(ctx context.Context) error {
	if err := policy.ContextError(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	if b.slots.TryAcquire(1) {
		b.mu.Unlock()
		return nil
	}
	if b.queued >= b.settings.maxQueue || b.settings.maxWait == 0 {
		full := b.refuseLocked()
		b.mu.Unlock()
		return b.tellRefusal(ctx, full, "no place in the queue")
	}
	b.queued++
	b.mu.Unlock()
	return b.wait(ctx)
}

// wait takes a place in the queue, which is already counted, until it has a slot.
func (b *Bulkhead) wait(ctx context.Context) error {
	err := b.stand(ctx)
	if err == nil {
		return nil
	}
	if ended := policy.ContextError(ctx); ended != nil {
		return ended
	}
	b.mu.Lock()
	full := b.refuseLocked()
	b.mu.Unlock()
	return b.tellRefusal(ctx, full, "no slot within "+b.settings.maxWait.String())
}

func (b *Bulkhead) stand(ctx context.Context) error {
	defer func() {
		b.mu.Lock()
		b.queued--
		b.mu.Unlock()
	}()
	b.tell(ctx, policy.Event{Kind: policy.BulkheadQueued})
	bounded := ctx
	if b.settings.maxWait != forever {
		var cancel context.CancelFunc
		bounded, cancel = policy.WithTimeout(ctx, b.settings.clock, b.settings.maxWait, nil)
		defer cancel()
	}
	if err := b.slots.Acquire(bounded, 1); err != nil {
		return err
	}
	err := policy.ContextError(ctx)
	if err != nil { // granted at the very moment the caller gave up: pass it on
		b.slots.Release(1)
	}
	return err
}

// refuseLocked counts a refusal. Whoever is refused has just been denied a slot, so
// all of them are taken.
func (b *Bulkhead) refuseLocked() *FullError {
	b.rejected++
	limit := b.settings.limit
	return &FullError{Name: b.settings.name, Limit: limit, InFlight: limit, Queued: b.queued}
}

func (b *Bulkhead) tellRefusal(ctx context.Context, err *FullError, reason string) error {
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
	s := &slot{of: b.slots}
	taken := false
	defer func() {
		if !taken {
			s.release()
		}
	}()
	taken = keeper != nil && value != nil && keeper.Keep(value, s.release) ||
		err != nil && policy.AfterEnd(err, s.release)
}

// freeLocked counts the free slots by taking them, in powers of two from the largest
// down, and putting them back at once.
//
// A counter of the slots taken would be simpler, but its two atomic adds on each call
// cost half as much as the semaphore itself, and more where processors share the line.
// So the reader pays, and a call that comes meanwhile: see enter.
func (b *Bulkhead) freeLocked() int {
	free := int64(0)
	for n := int64(1) << (bits.Len(uint(b.settings.limit)) - 1); n > 0; n /= 2 {
		if b.slots.TryAcquire(n) {
			free += n
		}
	}
	b.slots.Release(free)
	return int(free)
}

// A slot is one that was taken, in the hands of somebody who may give it back twice.
type slot struct {
	of       *semaphore.Weighted
	released atomic.Bool
}

func (s *slot) release() {
	if s.released.CompareAndSwap(false, true) {
		s.of.Release(1)
	}
}
