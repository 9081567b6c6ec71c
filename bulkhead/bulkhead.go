package bulkhead

import (
	"container/list"
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
	slots    *semaphore.Weighted
	events   policy.Events

	rejected atomic.Uint64

	// The semaphore has a line of its own, but does not tell who in it has been served
	// and who still waits: calls would be refused for a queue that is already empty.
	//
	// waiting is the length of line, and one more while a call looks whether it has to
	// join. It changes under mu; while it is 0, slots come and go without the lock.
	waiting atomic.Int64

	mu   sync.Mutex // guards line; not held during a wait
	line list.List  // of those who wait: a chan struct{} each, closed once a slot is theirs
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
	return func(ctx context.Context, call policy.Call) (any, error) {
		if ctx.Err() != nil || b.waiting.Load() > 0 || !b.slots.TryAcquire(1) {
			if err := b.enter(ctx); err != nil {
				return nil, err
			}
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
// gets none. Release gives the slot back; calling it again does nothing.
func (b *Bulkhead) Acquire(ctx context.Context) (release func(), err error) {
	if err := b.enter(ctx); err != nil {
		return nil, err
	}
	return (&slot{of: b}).release, nil
}

// Name is the name that events, errors and descriptions carry.
func (b *Bulkhead) Name() string { return b.settings.name }

// Stats is a snapshot of a [Bulkhead].
type Stats struct {
	Limit    int
	InFlight int // slots taken
	Queued   int // calls that wait
	MaxQueue int
	Rejected uint64 // calls refused with a FullError so far
}

// Stats reads the numbers as they are now. It costs some 10 ns for each binary
// digit of the limit; calls that begin meanwhile wait for it.
func (b *Bulkhead) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.serveLocked()
	return Stats{
		Limit:    b.settings.limit,
		InFlight: b.settings.limit - b.freeLocked(),
		Queued:   b.line.Len(),
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
	if err := policy.ContextError(ctx); err != nil {
		return err
	}
	place, queued, ok := b.join()
	switch {
	case !ok:
		return b.refuse(ctx, queued, "no place in the queue")
	case place == nil:
		return nil
	}
	b.tellQueued(ctx, place)
	b.await(ctx, place)
	return b.conclude(ctx, place)
}

// join takes a slot, else a place in the line, else tells how many have one.
//
// It tries under the lock before it believes that there is no slot: an earlier try may
// have met a reader of Stats with the free ones in its hands. It counts as waiting
// before it tries, so that whoever gives a slot back after that serves the line.
func (b *Bulkhead) join() (place *list.Element, queued int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.Add(1)
	b.serveLocked()
	queued = b.line.Len()
	if queued > 0 || !b.slots.TryAcquire(1) {
		if queued < b.settings.maxQueue && b.settings.maxWait > 0 {
			return b.line.PushBack(make(chan struct{})), queued, true
		}
		b.waiting.Add(-1)
		return nil, queued, false
	}
	b.waiting.Add(-1)
	return nil, queued, true
}

// await returns when a slot is there, MaxWait has passed, or ctx has ended.
func (b *Bulkhead) await(ctx context.Context, place *list.Element) {
	var expired chan struct{}
	if b.settings.maxWait != forever {
		expired = make(chan struct{})
		timer := b.settings.clock.AfterFunc(b.settings.maxWait, func() { close(expired) })
		defer timer.Stop()
	}
	select {
	case <-place.Value.(chan struct{}):
	case <-ctx.Done():
	case <-expired:
	}
}

// conclude decides a wait that is over, by what holds now and not by what ended it.
func (b *Bulkhead) conclude(ctx context.Context, place *list.Element) error {
	ended := policy.ContextError(ctx)
	served, queued := b.quit(place)
	switch {
	case served && ended != nil: // at the very moment the caller gave up: pass it on
		b.release()
		return ended
	case served || ended != nil:
		return ended
	}
	return b.refuse(ctx, queued, "no slot within "+b.settings.maxWait.String())
}

// quit gives up the place in line, unless it has been served, and tells how many are
// left.
func (b *Bulkhead) quit(place *list.Element) (served bool, queued int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.serveLocked()
	select {
	case <-place.Value.(chan struct{}):
		return true, b.line.Len()
	default:
		b.line.Remove(place)
		b.waiting.Add(-1)
		return false, b.line.Len()
	}
}

// serveLocked hands free slots to those who wait, in order. It finds one only between
// the two steps of a release.
func (b *Bulkhead) serveLocked() {
	for b.line.Len() > 0 && b.slots.TryAcquire(1) {
		close(b.line.Remove(b.line.Front()).(chan struct{}))
		b.waiting.Add(-1)
	}
}

// release gives a slot back.
func (b *Bulkhead) release() {
	b.slots.Release(1)
	if b.waiting.Load() > 0 {
		b.mu.Lock()
		b.serveLocked()
		b.mu.Unlock()
	}
}

// refuse answers a call that was denied a slot: all of them are taken.
func (b *Bulkhead) refuse(ctx context.Context, queued int, reason string) error {
	b.rejected.Add(1)
	limit := b.settings.limit
	err := &FullError{Name: b.settings.name, Limit: limit, InFlight: limit, Queued: queued}
	b.tell(ctx, policy.Event{Kind: policy.BulkheadRejected, Err: err, Reason: reason})
	return err
}

// tellQueued gives the place back if an observer panics: nobody will wait at it.
func (b *Bulkhead) tellQueued(ctx context.Context, place *list.Element) {
	told := false
	defer func() {
		if told {
			return
		}
		if served, _ := b.quit(place); served {
			b.release()
		}
	}()
	b.tell(ctx, policy.Event{Kind: policy.BulkheadQueued})
	told = true
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

// freeLocked counts the free slots by taking them, in powers of two from the largest
// down, and putting them back at once.
//
// A counter of the slots taken would be simpler, but its two atomic adds on each call
// cost half as much as the semaphore itself, and more where processors share the line.
// So the reader pays, and a call that comes meanwhile: see join.
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
	of       *Bulkhead
	released atomic.Bool
}

func (s *slot) release() {
	if s.released.CompareAndSwap(false, true) {
		s.of.release()
	}
}
