package holdfast_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/ratelimit"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A thousand callers at once through every layer, and all that can go wrong at the same
// time. Afterwards nothing is held by anybody, and the pipeline works.
func TestStorm(t *testing.T) {
	for _, tt := range []struct {
		name           string
		attempt, total []timeout.Option
	}{
		{"on the callers' goroutines", nil, nil},
		{"attempts abandoned", []timeout.Option{timeout.Abandon()}, nil},
		{"calls abandoned", nil, []timeout.Option{timeout.Abandon()}},
		{"both abandoned", []timeout.Option{timeout.Abandon()}, []timeout.Option{timeout.Abandon()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStorm(tt.attempt, tt.total)
			over := make(chan struct{})
			var others, callers sync.WaitGroup
			others.Go(func() { s.passTime(over) })
			others.Go(func() { s.operate(over) })
			for i := range 1000 {
				callers.Go(func() { s.call(t, i) })
			}
			callers.Wait()
			s.awaitAbandoned(t)
			close(over)
			others.Wait()
			s.check(t)
		})
	}
}

const stormLimit = 50

// storm is a pipeline on a clock that never stands still, and what its calls hold.
type storm struct {
	clock    *policytest.Clock
	layers   holdfast.Layers
	pipeline *holdfast.Pipeline

	running, most atomic.Int64 // calls at the moment, and the most at any
	bodies        atomic.Int64 // values that nobody has closed
}

func newStorm(attempt, total []timeout.Option) *storm {
	clock := policytest.NewClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	s := &storm{clock: clock, layers: holdfast.Layers{
		Timeout: timeout.New(50*time.Millisecond, append(attempt, timeout.Clock(clock))...),
		Bulkhead: bulkhead.New(stormLimit,
			bulkhead.MaxQueue(500), bulkhead.MaxWait(200*time.Millisecond), bulkhead.Clock(clock)),
		RateLimit: ratelimit.New(ratelimit.Per(10_000, time.Second), 100,
			ratelimit.MaxWait(100*time.Millisecond), ratelimit.Clock(clock)),
		Breaker: breaker.New("storm",
			breaker.FailureRate(.7, breaker.Within(time.Second)), breaker.SlowCalls(40*time.Millisecond, .9, breaker.Last(50)),
			breaker.OpenFor(20*time.Millisecond), breaker.TrialTimeout(30*time.Millisecond), breaker.Trials(3, 2),
			breaker.Clock(clock)),
		Retry:    retry.New(retry.Exponential(time.Millisecond, 20*time.Millisecond), retry.Clock(clock)),
		Total:    timeout.New(500*time.Millisecond, append(total, timeout.Clock(clock), timeout.Name("total"))...),
		Fallback: fallback.Value("cached"),
	}}
	s.pipeline = s.layers.Compose()
	s.pipeline.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) { // calls back
		s.layers.Breaker.Stats()
		s.layers.Bulkhead.Stats()
		s.layers.RateLimit.Stats()
	}))
	return s
}

// passTime moves the clock, and sets the wall clock to and fro.
func (s *storm) passTime(over <-chan struct{}) {
	start := s.clock.Now()
	for !closed(over) {
		s.clock.Advance(rand.N(time.Millisecond))
		s.clock.Set(start.Add(rand.N(48*time.Hour) - 24*time.Hour))
		runtime.Gosched()
	}
}

// operate isolates and resets the breaker now and then.
func (s *storm) operate(over <-chan struct{}) {
	for i := 0; !closed(over); i++ {
		switch i % 10_000 {
		case 0:
			release := s.layers.Breaker.Isolate()
			runtime.Gosched()
			release()
			release()
		case 5000:
			s.layers.Breaker.Reset()
		}
		runtime.Gosched()
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// call is a caller: one in five has a deadline.
func (s *storm) call(t *testing.T, caller int) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	if caller%5 == 0 {
		var cancel context.CancelFunc
		ctx, cancel = s.clock.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
	}
	call := &stormCall{storm: s, leave: leave}
	call.number.Store(int64(caller / 5))
	defer func() {
		if got := recover(); got != nil && got != errDown {
			t.Errorf("recovered %v, want the call's own panic", got)
		}
	}()
	value, err := s.pipeline.Invoke(ctx, call)
	if body, ok := value.(*stormBody); ok {
		runtime.Gosched()
		body.close()
	}
	if err != nil && ctx.Err() == nil {
		t.Errorf("error %v, want the fallback's answer while the caller is there", err)
	}
}

// awaitAbandoned waits for the calls that go on without their callers.
func (s *storm) awaitAbandoned(t *testing.T) {
	held := func() int {
		return s.layers.Timeout.Stats().Abandoned + s.layers.Total.Stats().Abandoned + s.layers.Bulkhead.Stats().InFlight
	}
	for start := time.Now(); held() > 0; runtime.Gosched() {
		if time.Since(start) > 5*time.Second {
			t.Fatalf("%d abandoned attempts, %d abandoned calls, bulkhead %+v: they never end",
				s.layers.Timeout.Stats().Abandoned, s.layers.Total.Stats().Abandoned, s.layers.Bulkhead.Stats())
		}
	}
}

func (s *storm) check(t *testing.T) {
	if s.most.Load() > stormLimit {
		t.Errorf("%d calls at once, want at most %d", s.most.Load(), stormLimit)
	}
	if n := s.bodies.Load(); n != 0 {
		t.Errorf("%d values neither reached a caller nor were discarded", n)
	}
	if n := s.clock.Pending(); n != 0 {
		t.Errorf("%d timers left", n)
	}
	s.checkBulkhead(t)
	s.checkBreaker(t)
}

// checkBulkhead takes all slots, and gives each back twice.
func (s *storm) checkBulkhead(t *testing.T) {
	b := s.layers.Bulkhead
	var releases []func()
	for range stormLimit {
		release, err := b.Acquire(t.Context())
		if err != nil {
			t.Fatalf("a slot is missing: %v", err)
		}
		releases = append(releases, release, release)
	}
	if got := b.Stats(); got.InFlight != stormLimit || got.Queued != 0 {
		t.Errorf("bulkhead %+v, want all slots taken and nobody waiting", got)
	}
	for _, release := range releases {
		release()
	}
	if got := b.Stats(); got.InFlight != 0 {
		t.Errorf("bulkhead %+v, want it free", got)
	}
}

// checkBreaker has the breaker trip and close again.
func (s *storm) checkBreaker(t *testing.T) {
	b := s.layers.Breaker
	b.Reset()
	handler := b.Wrap(policy.Invoke)
	for range 10 { // the default of MinimumCalls
		handler(t.Context(), policytest.Script(policytest.Fail(errDown)))
	}
	if got := b.State(); got != breaker.Open {
		t.Errorf("breaker %s after ten failures, want it open", got)
	}
	s.clock.Advance(20 * time.Millisecond)
	for range 2 {
		if _, err := handler(t.Context(), policytest.Script(policytest.Return(nil))); err != nil {
			t.Errorf("trial: %v", err)
		}
	}
	if got := b.State(); got != breaker.Closed {
		t.Errorf("breaker %s after two trials, want it closed", got)
	}
}

// stormCall ends in another way each time it is invoked, and its value owns something.
type stormCall struct {
	storm  *storm
	leave  func() // cancels the caller's ctx
	number atomic.Int64
}

func (c *stormCall) Invoke(ctx context.Context) (any, error) {
	s := c.storm
	running := s.running.Add(1)
	defer s.running.Add(-1)
	for most := s.most.Load(); running > most && !s.most.CompareAndSwap(most, running); {
		most = s.most.Load()
	}
	runtime.Gosched()
	switch c.number.Add(1) % 10 {
	case 0:
		panic(errDown)
	case 1:
		runtime.Goexit()
	case 2:
		<-ctx.Done()
		return nil, ctx.Err()
	case 3: // deaf to ctx
		policy.Sleep(context.Background(), s.clock, 80*time.Millisecond)
	case 4:
		c.leave()
		return nil, ctx.Err()
	case 5:
		return nil, retry.Permanent(errDown)
	case 6, 7:
		return s.newBody(), errDown // a value beside an error
	}
	return s.newBody(), nil
}

// Keep implements [policy.Keeper].
func (c *stormCall) Keep(value any, release func()) bool {
	body := value.(*stormBody)
	body.mu.Lock()
	defer body.mu.Unlock()
	body.owns = append(body.owns, release)
	return true
}

// Discard implements [policy.Keeper].
func (c *stormCall) Discard(value any) { value.(*stormBody).close() }

// stormBody is a value that has to be closed.
type stormBody struct {
	storm *storm

	mu   sync.Mutex // guards owns
	owns []func()
}

func (s *storm) newBody() *stormBody {
	s.bodies.Add(1)
	return &stormBody{storm: s}
}

func (b *stormBody) close() {
	b.mu.Lock()
	owns := b.owns
	b.owns = nil
	b.mu.Unlock()
	for _, release := range owns {
		release()
	}
	b.storm.bodies.Add(-1)
}
