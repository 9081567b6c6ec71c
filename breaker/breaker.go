package breaker

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/policy"
)

// A Breaker is a [policy.Policy] that stops calling a dependency that keeps failing. It
// is safe for concurrent use, must not be copied, and has nothing to close: its state
// moves when a call or a reader comes by.
//
// A success under [ConsecutiveFailures] alone writes no shared memory, unless there is a
// run of failures to end, or a classifier or [policy.Judge] to ask. A window costs a lock
// per call, one over time a reading of the clock too, and [SlowCalls] or [SlowIsFailure]
// two. Nothing is allocated on success.
type Breaker struct {
	settings *settings
	events   policy.Events
	rejected atomic.Uint64

	// word and openUntil publish the machine for those who do without the lock. They are
	// written under mu, openUntil first.
	word      atomic.Uint64
	openUntil atomic.Int64

	mu      sync.Mutex // guards the fields below
	machine machine
	told    uint64 // transitions that were told
	telling bool   // somebody tells transitions at the moment
	asked   int    // the opening that the machine's next period was asked for
}

// The bits of Breaker.word, below the generation.
const (
	wordClosed uint64 = 1 << iota
	wordOpen
	wordRun // there is a run of failures
	wordGeneration
)

// A Transition is a change of state. At is its own time, also where a late reader brought
// it about; Seq counts the breaker's transitions from 1.
type Transition struct {
	Breaker  string
	From, To State
	At       time.Time
	Reason   string // for people: "failure rate 60% ≥ 50% of 10 calls"
	Seq      uint64
}

// Stats is a snapshot of a [Breaker].
type Stats struct {
	State State
	// Calls and Failures are those of FailureRate's window, else of Failures', else of
	// SlowCalls'; 0 where there is none, and while the circuit is not closed.
	Calls, Failures     int
	SlowCalls           int // in SlowCalls' window
	ConsecutiveFailures int
	Openings            int // in a row
	// The rates are -1 below MinimumCalls, and where there is no window.
	FailureRate, SlowRate float64
	RetryIn               time.Duration // until a call may be admitted; 0 where one may be, or nobody knows
	Rejected              uint64        // refused calls
	Late                  uint64        // results that moved nothing: a transition had come before them
}

// New makes a closed breaker. Its name, not empty, is the dependency's. It panics on a bad
// setting, with all faults in one message.
func New(name string, opts ...Option) *Breaker {
	b, err := Build(name, opts...)
	if err != nil {
		panic(err.Error())
	}
	return b
}

// Build is [New] with an error instead of a panic.
func Build(name string, opts ...Option) (*Breaker, error) {
	s, err := build(name, opts)
	if err != nil {
		return nil, err
	}
	b := &Breaker{settings: s, asked: 1}
	var first time.Duration
	if s.opening.ask != nil {
		first = max(s.opening.ask(1), 0)
	} else {
		first = s.opening.period(1)
	}
	b.machine = newMachine(s, first, s.clock.Elapsed())
	b.publish()
	return b, nil
}

// Wrap implements [policy.Policy].
func (b *Breaker) Wrap(next policy.Handler) policy.Handler {
	return func(ctx context.Context, call policy.Call) (any, error) {
		if ctx.Err() != nil {
			return nil, policy.ContextError(ctx)
		}
		word := b.word.Load()
		t := ticket{generation: word / wordGeneration}
		if word&wordClosed == 0 || b.settings.measured {
			var err error
			if t, err = b.admit(ctx); err != nil {
				return nil, err
			}
		}
		returned := false
		defer func() {
			if !returned { // a panic or Goexit: a failure
				guard.Quiet(func() { b.record(ctx, t, policy.Failure, false) })
			}
		}()
		value, err := next(ctx, call)
		returned = true
		if _, judges := call.(policy.Judge); err == nil && b.settings.classify == nil && !judges {
			if b.settings.runOnly && b.word.Load() == t.word() {
				return value, nil // closed as before, and no run of failures to end
			}
			b.succeed(ctx, t, call, value)
		} else {
			b.settle(ctx, t, call, value, err)
		}
		return value, err
	}
}

// Allow admits a call by hand, for what is no function call, such as a stream. The
// caller runs it if err is nil, and then calls done with what it said; a stream does so
// once established. Calling done again does nothing; done(0) is done(policy.Ignored).
// The refusal is a *[CircuitOpenError]. Unlike a call in a pipeline, Allow allocates.
func (b *Breaker) Allow() (done func(policy.Outcome), err error) {
	ctx := context.Background()
	t, err := b.admit(ctx)
	if err != nil {
		return nil, err
	}
	var called atomic.Bool
	return func(outcome policy.Outcome) {
		if called.Swap(true) {
			return
		}
		if outcome != policy.Success && outcome != policy.Failure {
			outcome = policy.Ignored
		}
		b.record(ctx, t, outcome, false)
	}, nil
}

// State is the state as of now: once the open period has elapsed it is HalfOpen, even
// before the next call. It costs one atomic load while the circuit is closed, else as
// much as [Breaker.Stats].
func (b *Breaker) State() State {
	if b.word.Load()&wordClosed != 0 {
		return Closed // which no time changes
	}
	var s State
	b.change(func(m *machine, now time.Duration) {
		m.advance(now)
		s = m.state
	})
	return s
}

// Isolate forces the circuit open until release is called: for maintenance, or as a kill
// switch. Isolations stack: the last release leaves the circuit closed. Calling release
// again does nothing.
func (b *Breaker) Isolate() (release func()) {
	b.change((*machine).isolate)
	var called atomic.Bool // no sync.Once: a callback may call release again
	return func() {
		if !called.Swap(true) {
			b.change((*machine).release)
		}
	}
}

// Reset closes the circuit and empties its windows; results of running calls are late.
// Isolations stay, and what Reset closes is what they hide.
func (b *Breaker) Reset() { b.change((*machine).reset) }

// Stats reads the numbers as they are now. It costs a lock and a reading of the clock,
// and tells of the transitions that time has brought.
func (b *Breaker) Stats() Stats {
	var s Stats
	b.change(func(m *machine, now time.Duration) { s = m.stats(now) })
	s.Rejected = b.rejected.Load()
	return s
}

// Name is the name that events, errors and descriptions carry.
func (b *Breaker) Name() string { return b.settings.name }

// Describe implements [policy.Describer].
func (b *Breaker) Describe() policy.Description {
	return policy.Description{Kind: kind, Name: b.settings.name, Params: b.settings.params()}
}

// Subscribe implements [policy.Observable]: circuit.rejected and circuit.state_changed.
func (b *Breaker) Subscribe(o policy.Observer) (cancel func()) { return b.events.Subscribe(o) }

// admit lets a call in, or refuses it. While the circuit is closed, or open for longer
// yet, it takes no lock.
func (b *Breaker) admit(ctx context.Context) (ticket, error) {
	word, now := b.word.Load(), b.settings.clock.Elapsed()
	if word&wordClosed != 0 {
		return ticket{generation: word / wordGeneration, start: now}, nil
	}
	if word&wordOpen != 0 {
		if left := time.Duration(b.openUntil.Load()) - now; left > 0 {
			return ticket{}, b.refuse(ctx, Open, left)
		}
	}

	b.mu.Lock()
	t, retryIn, ok := b.machine.admit(now)
	state := b.machine.state
	b.publish()
	b.mu.Unlock()
	if !ok {
		b.tell(ctx)
		return ticket{}, b.refuse(ctx, state, retryIn)
	}
	b.tellAdmitted(ctx, t)
	return t, nil
}

func (b *Breaker) refuse(ctx context.Context, state State, retryIn time.Duration) error {
	b.rejected.Add(1)
	err := &CircuitOpenError{Name: b.settings.name, State: state, RetryIn: retryIn}
	if b.events.Observed() {
		b.events.Emit(ctx, policy.Event{
			Kind:   policy.CircuitRejected,
			Time:   b.settings.clock.Now(),
			Policy: kind,
			Name:   b.settings.name,
			Reason: "circuit " + state.String(),
			Err:    err,
			Delay:  retryIn,
		})
	}
	return err
}

// succeed records the success that it takes no judgement to see.
func (b *Breaker) succeed(ctx context.Context, t ticket, call policy.Call, value any) {
	if b.count(t, policy.Success, false) {
		b.deliver(call, value, func() { b.tell(ctx) })
	}
}

// settle records what the outcome of a call that has returned says.
func (b *Breaker) settle(ctx context.Context, t ticket, call policy.Call, value any, err error) {
	b.deliver(call, value, func() {
		// The outcome that stands if a classifier panics.
		outcome, left := policy.DefaultClassifier(value, err), false
		defer func() { b.record(ctx, t, outcome, left) }()
		switch {
		case outcome == policy.Ignored: // refused inside
		case err == nil || ctx.Err() == nil:
			outcome = policy.Judgement(b.settings.classify, call, value, err)
		case b.settings.countDeadlines && errors.Is(ctx.Err(), context.DeadlineExceeded):
		default:
			outcome, left = policy.Ignored, true
		}
	})
}

// deliver runs callbacks of the user's. A value that their panic keeps from the caller is
// discarded.
func (b *Breaker) deliver(call policy.Call, value any, callbacks func()) {
	returned := false
	defer func() {
		if !returned {
			policy.Discard(call, value)
		}
	}()
	callbacks()
	returned = true
}

// record counts an outcome, and tells of the transitions that it brings.
func (b *Breaker) record(ctx context.Context, t ticket, outcome policy.Outcome, left bool) {
	if b.count(t, outcome, left) {
		b.tell(ctx)
	}
}

// count counts an outcome, and reports whether there are transitions to tell. Left says
// that it is Ignored because the caller had left: a call that was slow by then counts as
// slow all the same.
func (b *Breaker) count(t ticket, outcome policy.Outcome, left bool) (pending bool) {
	s := b.settings
	now := longAgo // a success in windows over calls needs no time
	known := s.timed || t.trial != 0 || outcome == policy.Failure
	if known {
		now = s.clock.Elapsed()
	}
	r := result{outcome: outcome}
	if s.measured {
		took := now - t.start
		r.slow = s.slowCalls != nil && took > s.slowCalls.slowerThan && (outcome != policy.Ignored || left)
		if outcome == policy.Success && s.slowIsFailure > 0 && took > s.slowIsFailure {
			r.outcome = policy.Failure
		}
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	if reason := b.machine.record(t, r, now); reason != "" {
		if !known {
			now = s.clock.Elapsed()
		}
		b.machine.open(b.machine.advance(now), reason)
	}
	b.publish()
	return len(b.machine.moves) > 0
}

// change applies a transition, or a look, that an operator asked for.
func (b *Breaker) change(f func(m *machine, now time.Duration)) {
	now := b.settings.clock.Elapsed()
	b.mu.Lock()
	f(&b.machine, now)
	b.publish()
	b.mu.Unlock()
	b.tell(context.Background())
}

// longAgo stands for a time that was not read: a clock may begin at any time.
const longAgo time.Duration = math.MinInt64

// publish makes the machine's state known to those without the lock, which the caller
// holds.
func (b *Breaker) publish() {
	word := b.machine.generation * wordGeneration
	switch b.machine.state {
	case Closed:
		word |= wordClosed
	case Open:
		b.openUntil.Store(int64(b.machine.openUntil))
		word |= wordOpen
	}
	if b.machine.run > 0 {
		word |= wordRun
	}
	if b.word.Load() != word {
		b.word.Store(word)
	}
}
