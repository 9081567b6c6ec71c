package ratelimit_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/ratelimit"
)

// stepping is a clock whose Elapsed, too, steps back now and then.
type stepping struct {
	*policytest.Clock

	mu   sync.Mutex // guards rand
	rand *rand.Rand // nil: no steps yet
}

func (c *stepping) Elapsed() time.Duration {
	now := c.Clock.Elapsed()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rand != nil && c.rand.IntN(4) == 0 {
		now -= time.Duration(c.rand.Int64N(int64(time.Second)))
	}
	return now
}

func TestBoundUnderStorm(t *testing.T) { // BEHAVIOUR 65
	const burst, interval = 5, 10 * time.Millisecond
	clock := &stepping{Clock: policytest.NewClock(time.Now())}
	l := ratelimit.New(ratelimit.Per(100, time.Second), burst, ratelimit.Clock(clock))
	clock.rand = rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex // holds the clock still while a token is taken and noted
	var taken []time.Duration
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range 500 {
				mu.Lock()
				if l.Allow() {
					taken = append(taken, clock.Clock.Elapsed())
				}
				if i%3 == 0 {
					clock.Advance(time.Millisecond)
					clock.Set(time.Unix(int64(i), 0))
				}
				mu.Unlock()
				l.Stats()
			}
		})
	}
	wg.Wait()
	for i := range taken {
		for j := i; j < len(taken); j++ {
			if n, window := j-i+1, taken[j]-taken[i]; n > burst+int(window/interval) {
				t.Fatalf("%d tokens within %v", n, window)
			}
		}
	}
	if least := int(clock.Clock.Elapsed() / interval / 2); len(taken) < least {
		t.Errorf("%d tokens in %v", len(taken), clock.Clock.Elapsed())
	}
}

// Whatever the crowd does, it leaves no place, no timer and no goroutine behind, and
// takes no more than the rate allows.
func TestStorm(t *testing.T) {
	for name, maxWait := range map[string]time.Duration{"MaxWait": time.Second, "for ever": math.MaxInt64} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.New(ratelimit.Per(1000, time.Second), 10, ratelimit.MaxWait(maxWait))
				start := time.Now()
				var mu sync.Mutex // guards admitted
				var admitted []time.Duration
				var wg sync.WaitGroup
				for i := range 1000 {
					wg.Go(func() {
						defer func() { recover() }()
						time.Sleep(time.Duration(rand.IntN(int(200 * ms))))
						ctx, cancel := context.WithCancel(t.Context())
						switch i % 4 {
						case 0:
							ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(int(100*ms))))
						case 1:
							time.AfterFunc(time.Duration(rand.IntN(int(100*ms))), cancel)
						}
						defer cancel()
						_, err := l.Wrap(policy.Invoke)(ctx, policy.CallFunc(func(ctx context.Context) (any, error) {
							mu.Lock()
							admitted = append(admitted, time.Since(start))
							mu.Unlock()
							if i%8 == 0 {
								panic("call")
							}
							return nil, ctx.Err()
						}))
						if err != nil && !policy.Rejected(err) && ctx.Err() == nil {
							t.Errorf("error %v", err)
						}
					})
				}
				wg.Wait()
				slices.Sort(admitted)
				for i := range admitted {
					for j := i; j < len(admitted); j++ {
						if n, window := j-i+1, admitted[j]-admitted[i]; n > 10+int(window/ms) {
							t.Fatalf("%d calls within %v", n, window)
						}
					}
				}
				if len(admitted) < 200 {
					t.Errorf("%d of 1000 admitted", len(admitted))
				}
				time.Sleep(time.Second)
				if s := l.Stats(); s.Available != 10 || !l.Allow() {
					t.Errorf("stats %+v, want a full burst", s)
				}
			})
		})
	}
}

// A waiter that gives up at the instant its token is due takes none along.
func TestTokenMeetsCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Per(10, time.Second), 1)
		for range 1000 {
			if err := l.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*ms, cancel)
			first := l.Wait(ctx)
			if first != nil && !errors.Is(first, context.Canceled) {
				t.Fatal(first)
			}
			cancel()
			if taken := first == nil; l.Allow() == taken {
				t.Fatalf("token taken: %t, and yet another answer", taken)
			}
			time.Sleep(100 * ms)
		}
	})
}

// An observer may call back, and harms nothing when it panics: the place in line is
// given back.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Per(10, time.Second), 1)
		told := 0
		cancel := l.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) {
			told++
			l.Stats()
			if told == 1 {
				panic("observer")
			}
		}))
		defer cancel()
		if !l.Allow() {
			t.Fatal("no token")
		}
		func() {
			defer func() {
				if recover() != "observer" {
					t.Error("the observer's panic is gone")
				}
			}()
			l.Wait(t.Context())
		}()
		start := time.Now()
		if err := l.Wait(t.Context()); err != nil || time.Since(start) != 100*ms || told != 2 {
			t.Errorf("error %v after %v, told %d times", err, time.Since(start), told)
		}
	})
}
