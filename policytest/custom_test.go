package policytest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Maintenance refuses every call while under is true.
func Maintenance(under func() bool) policy.Policy {
	return policy.Func(func(next policy.Handler) policy.Handler {
		return func(ctx context.Context, call policy.Call) (any, error) {
			if err := policy.ContextError(ctx); err != nil {
				return nil, err // the caller has given up
			}
			if under() {
				return nil, fmt.Errorf("down for maintenance: %w", policy.ErrRejected)
			}
			return next(ctx, call)
		}
	})
}

func TestMaintenance(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return Maintenance(func() bool { return false }) })
}

func Example_custom() {
	var down atomic.Bool
	pipeline := holdfast.Compose(Maintenance(down.Load), retry.New())
	down.Store(true)
	err := holdfast.Run(context.Background(), pipeline, func(context.Context) error { return nil })
	fmt.Println(err, policy.Rejected(err))
	// Output: down for maintenance: policy: call rejected true
}

// A Shedder refuses unimportant calls while many run.
type Shedder struct {
	limit   int64
	running atomic.Int64
	events  policy.Events
}

// NewShedder makes a Shedder that refuses them from limit running calls on.
func NewShedder(limit int) *Shedder { return &Shedder{limit: int64(limit)} }

// Wrap implements policy.Policy.
func (s *Shedder) Wrap(next policy.Handler) policy.Handler {
	return func(ctx context.Context, call policy.Call) (any, error) {
		if err := policy.ContextError(ctx); err != nil {
			return nil, err
		}
		if s.running.Add(1) > s.limit && !important(ctx) { // first add, then look: others come at the same time
			s.running.Add(-1)
			return nil, s.refuse(ctx)
		}
		defer s.running.Add(-1) // whether the call returns, panics, or ends its goroutine
		return next(ctx, call)
	}
}

func (s *Shedder) refuse(ctx context.Context) error {
	err := fmt.Errorf("shed: %d calls are running: %w", s.limit, policy.ErrRejected)
	if s.events.Observed() {
		s.events.Emit(ctx, policy.Event{Kind: "shed.rejected", Policy: "shed", Err: err})
	}
	return err
}

// Subscribe implements policy.Observable.
func (s *Shedder) Subscribe(o policy.Observer) (cancel func()) { return s.events.Subscribe(o) }

// Describe implements policy.Describer.
func (s *Shedder) Describe() policy.Description {
	return policy.Description{Kind: "shed", Name: "shed", Params: []slog.Attr{slog.Int64("limit", s.limit)}}
}

type importance struct{}

// Important marks the calls that ctx is for as important.
func Important(ctx context.Context) context.Context {
	return context.WithValue(ctx, importance{}, true)
}

func important(ctx context.Context) bool { return ctx.Value(importance{}) != nil }

func TestShedderKeepsTheRules(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return NewShedder(10) })
}

func TestShedder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shedder := NewShedder(2)
		recorder := policytest.Record(shedder)
		pipeline := holdfast.Compose(shedder)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 2 {
			go holdfast.Do(ctx, pipeline, policytest.Script(policytest.Block()).Invoke)
		}
		synctest.Wait()
		answer := policytest.Script(policytest.Return("x"))
		if _, err := holdfast.Do(ctx, pipeline, answer.Invoke); !errors.Is(err, policy.ErrRejected) {
			t.Errorf("%v, want a refusal", err)
		}
		if _, err := holdfast.Do(Important(ctx), pipeline, answer.Invoke); err != nil {
			t.Errorf("%v for an important call", err)
		}
		if kinds := recorder.Kinds(); len(kinds) != 1 || kinds[0] != "shed.rejected" {
			t.Errorf("told %v", kinds)
		}
	})
}

// However many come at once, the limit holds, and is back afterwards.
func TestShedderLimitIsHard(t *testing.T) {
	const limit = 10
	shedder := NewShedder(limit)
	handler := shedder.Wrap(policy.Invoke)
	var running, most atomic.Int64
	call := policy.CallFunc(func(context.Context) (any, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		runtime.Gosched()
		return nil, nil
	})
	var calls sync.WaitGroup
	for range 1000 {
		calls.Go(func() {
			for range 10 {
				handler(t.Context(), call)
			}
		})
	}
	calls.Wait()
	if most.Load() > limit || shedder.running.Load() != 0 {
		t.Errorf("%d ran at once, want at most %d; %d are left", most.Load(), limit, shedder.running.Load())
	}
}

func Example_describe() {
	pipeline := holdfast.Compose(
		timeout.New(time.Second),
		NewShedder(100), // where a bulkhead would stand
		breaker.New("payments"),
		retry.New(),
	)
	fmt.Println(pipeline)
	// Output: retry(attempts=3) → breaker("payments") → shed → timeout(1s) → call
}

// Slots lets a number of calls run at once, until their work has ended.
type Slots struct {
	limit int64
	taken atomic.Int64
}

func (s *Slots) take() bool {
	if s.taken.Add(1) > s.limit {
		s.taken.Add(-1)
		return false
	}
	return true
}

func (s *Slots) free() { s.taken.Add(-1) }

// Wrap implements policy.Policy.
func (s *Slots) Wrap(next policy.Handler) policy.Handler {
	return func(ctx context.Context, call policy.Call) (value any, err error) {
		if err := policy.ContextError(ctx); err != nil {
			return nil, err
		}
		if !s.take() {
			return nil, policy.ErrRejected
		}
		release := sync.OnceFunc(s.free)
		defer func() {
			keeper, ok := call.(policy.Keeper)
			if ok && value != nil && keeper.Keep(value, release) {
				return // until the value is done with
			}
			if policy.AfterEnd(err, release) {
				return // until the call has ended
			}
			release()
		}()
		return next(ctx, call)
	}
}

func TestSlots(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return &Slots{limit: 10} })
	synctest.Test(t, func(t *testing.T) {
		slots := &Slots{limit: 1}
		pipeline := holdfast.Compose(timeout.New(time.Second, timeout.Abandon()), slots)
		slow := policytest.Script(policytest.Return("late").After(time.Minute))
		if _, err := holdfast.Do(t.Context(), pipeline, slow.Invoke); !errors.Is(err, timeout.ErrExceeded) {
			t.Errorf("%v, want an answer at the limit", err)
		}
		if slots.taken.Load() != 1 {
			t.Error("the slot is free although the call still runs")
		}
		time.Sleep(time.Hour)
		if slots.taken.Load() != 0 {
			t.Error("the slot is lost")
		}
	})
}
