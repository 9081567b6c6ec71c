package policytest_test

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/policy"
)

// least is the least that a policy must do.
func least(next policy.Handler) policy.Handler {
	return func(ctx context.Context, call policy.Call) (any, error) {
		if err := policy.ContextError(ctx); err != nil {
			return nil, err
		}
		return next(ctx, call)
	}
}

// around makes policies that do f, for a caller that is still there.
func around(f func(ctx context.Context, call policy.Call, next policy.Handler) (any, error)) func() policy.Policy {
	return func() policy.Policy {
		return policy.Func(func(next policy.Handler) policy.Handler {
			return least(func(ctx context.Context, call policy.Call) (any, error) { return f(ctx, call, next) })
		})
	}
}

// A retrier is a sound retry, where a field does not replace a part of it.
type retrier struct {
	again   func(call policy.Call, value any, err error) bool
	sleep   func(ctx context.Context, clock policy.Clock, d time.Duration) error
	discard func(call policy.Call, value any)
}

func (r retrier) policy() policy.Policy {
	if r.again == nil {
		r.again = worth
	}
	if r.sleep == nil {
		r.sleep = policy.Sleep
	}
	if r.discard == nil {
		r.discard = policy.Discard
	}
	return around(r.run)()
}

func (r retrier) run(ctx context.Context, call policy.Call, next policy.Handler) (value any, err error) {
	for range 3 {
		value, err = next(ctx, call)
		if !r.again(call, value, err) {
			return value, err
		}
		r.discard(call, value)
		if ended := r.sleep(ctx, policy.SystemClock, time.Hour); ended != nil {
			return nil, ended
		}
	}
	return next(ctx, call)
}

func worth(call policy.Call, value any, err error) bool {
	if j, ok := call.(policy.Judge); ok {
		_, again := j.Again(value, err)
		return again && !policy.Rejected(err)
	}
	return err != nil && !policy.Rejected(err)
}

// semaphore makes bulkheads of ten slots. run is to call next, and free afterwards.
func semaphore(take func(ctx context.Context, slots chan struct{}) error, run func(ctx context.Context, free, next func())) func() policy.Policy {
	return func() policy.Policy {
		slots := make(chan struct{}, 10)
		return around(func(ctx context.Context, call policy.Call, next policy.Handler) (value any, err error) {
			if err := take(ctx, slots); err != nil {
				return nil, err
			}
			run(ctx, func() { <-slots }, func() { value, err = next(ctx, call) })
			return value, err
		})()
	}
}

// take takes a slot, or none if there is none.
func take(_ context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	default:
		return policy.ErrRejected
	}
}

// queue waits for a slot.
func queue(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		if err := policy.ContextError(ctx); err != nil { // both were there, and chance chose
			<-slots
			return err
		}
		return nil
	case <-ctx.Done():
		return policy.ContextError(ctx)
	}
}

// A circuit opens for a second at each failure. It forgets to end a trial that
// neither succeeds nor fails.
type circuit struct {
	mu    sync.Mutex // guards the fields below
	opens time.Time
	trial bool
}

func (c *circuit) Wrap(next policy.Handler) policy.Handler {
	return least(func(ctx context.Context, call policy.Call) (any, error) {
		if !c.admit() {
			return nil, policy.ErrRejected
		}
		failed := true
		defer func() {
			if failed {
				c.open()
			}
		}()
		value, err := next(ctx, call)
		failed = policy.DefaultClassifier(value, err) == policy.Failure
		c.settle()
		return value, err
	})
}

func (c *circuit) admit() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opens.IsZero() {
		return true
	}
	if c.trial || time.Since(c.opens) < time.Second {
		return false
	}
	c.trial = true
	return true
}

func (c *circuit) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opens = time.Now()
}

func (c *circuit) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trial {
		c.trial, c.opens = false, time.Time{}
	}
}

type described struct{ policy.Policy }

func (described) Describe() policy.Description { return policy.Description{Name: "x"} }

// A teller tells each call's end, in a way that is sound where no field is set.
type teller struct {
	deaf  bool // a subscription does not end
	loud  bool // an observer's panic hides the call's
	lossy bool // an observer's panic keeps the value from everybody
	rude  bool // an observer's panic hides the event

	events policy.Events
	mu     sync.Mutex // guards list
	list   []policy.Observer
}

func (p *teller) Subscribe(o policy.Observer) (cancel func()) {
	if p.rude {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.list = append(p.list, o)
		return func() {}
	}
	cancel = p.events.Subscribe(o)
	if p.deaf {
		return func() {}
	}
	return cancel
}

func (p *teller) Wrap(next policy.Handler) policy.Handler {
	return least(func(ctx context.Context, call policy.Call) (value any, err error) {
		returned, told := false, false
		defer func() {
			switch {
			case !returned && p.loud:
				p.tell(ctx)
			case !returned:
				guard.Quiet(func() { p.tell(ctx) })
			case !told && !p.lossy:
				policy.Discard(call, value)
			}
		}()
		value, err = next(ctx, call)
		returned = true
		p.tell(ctx)
		told = true
		return value, err
	})
}

func (p *teller) tell(ctx context.Context) {
	event := policy.Event{Kind: "call.told"}
	p.events.Emit(ctx, event)
	p.mu.Lock()
	list := p.list
	p.mu.Unlock()
	for _, o := range list {
		event.Time = time.Now()
		o.Observe(ctx, event)
	}
}
