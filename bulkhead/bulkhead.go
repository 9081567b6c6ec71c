package bulkhead

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/policy"
)

// A Bulkhead is a [policy.Policy] that bounds how many calls run at the same time.
// It is safe for concurrent use, and must not be copied. While slots are free, a call
// takes no lock and allocates nothing, and costs little more than with a semaphore of
// golang.org/x/sync.
//
// A slot follows the work: a call that goes on after its caller was answered, as
// under timeout.Abandon, holds it until it ends, and so does a value that the call,
// a [policy.Keeper], keeps, until it is released.
type Bulkhead struct {
	settings settings
	events   policy.Events
	rejected atomic.Uint64

	// inside is how many hold a slot or wait for one. Nobody waits while a slot is free,
	// so up to the limit it counts slots, and beyond it the line. It changes beyond the
	// limit under mu only; below, slots come and go without.
	inside atomic.Int64

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
		if ctx.Err() != nil {
			return nil, policy.ContextError(ctx)
		}
		if !b.take() {
			if err := b.queue(ctx); err != nil {
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
	if ctx.Err() != nil {
		return nil, policy.ContextError(ctx)
	}
	if !b.take() {
		if err := b.queue(ctx); err != nil {
			return nil, err
		}
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

// take takes a slot if one is free.
func (b *Bulkhead) take() bool {
	for {
		n := b.inside.Load()
		if n >= int64(b.settings.limit) {
			return false
		}
		if b.inside.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// queue waits for a slot where that is allowed.
func (b *Bulkhead) queue(ctx context.Context) error {
	place, queued, ok := b.join()
	switch {
	case !ok:
		return b.refuse(ctx, queued, "no place in the queue")
	case place == nil: // a slot came free
		return nil
	}
	b.tellQueued(ctx, place)
	b.await(ctx, place)
	return b.conclude(ctx, place)
}

// join takes a slot, else the last place in the line, else tells how many have one.
func (b *Bulkhead) join() (place *list.Element, queued int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	mayWait := b.line.Len() < b.settings.maxQueue && b.settings.maxWait > 0
	for {
		n := b.inside.Load()
		full := n >= int64(b.settings.limit)
		switch {
		case full && !mayWait:
			return nil, b.line.Len(), false
		case !b.inside.CompareAndSwap(n, n+1): // a slot came or went
		case full:
			return b.line.PushBack(make(chan struct{})), b.line.Len(), true
		default:
			return nil, 0, true
		}
	}
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
	select {
	case <-place.Value.(chan struct{}):
		return true, b.line.Len()
	default:
		b.line.Remove(place)
		b.inside.Add(-1)
		return false, b.line.Len()
	}
}

// release gives a slot back, or to the first in line if there is one.
func (b *Bulkhead) release() {
	for n := b.inside.Load(); n <= int64(b.settings.limit); n = b.inside.Load() {
		if b.inside.CompareAndSwap(n, n-1) {
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside.Add(-1)
	if first := b.line.Front(); first != nil { // else they have all left meanwhile
		close(b.line.Remove(first).(chan struct{}))
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
