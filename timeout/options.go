package timeout

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/fault"
	"github.com/holdfast-go/holdfast/policy"
)

const kind = "timeout"

// An Option changes a setting of [New] or [Build]. The last of two equal options wins.
// None may be nil, nor a func or clock that is given to one.
type Option interface{ apply(*settings) }

// Name names the timeout in events, errors and descriptions; not empty. Default:
// "timeout".
func Name(name string) Option {
	return option(func(s *settings) { s.name = name })
}

// Abandon answers at the limit, or when the caller leaves, even if the call has not
// returned. For that each call gets a goroutine of its own, which costs some
// microseconds; what the call still returns is discarded, and a panic is told as
// call.panicked. A panic in time goes on in the caller, without its stack.
//
// Use it only around calls that cannot heed their ctx: nothing bounds how many of them
// pile up, other than a bulkhead outside this timeout. Default: the call runs on the
// caller's goroutine.
func Abandon() Option {
	return option(func(s *settings) { s.abandon = true })
}

// LimitFunc has f give the limit of each call in place of the fixed one; ≤ 0 is no
// limit for this call. f is called once per call, concurrently, with the caller's ctx.
// Default: the limit given to [New].
func LimitFunc(f func(ctx context.Context) time.Duration) Option {
	return option(func(s *settings) {
		s.limitFunc = f
		if f == nil {
			s.nils = append(s.nils, "LimitFunc(nil)")
		}
	})
}

// Clock gives the timeout the time. Default: [policy.SystemClock].
func Clock(c policy.Clock) Option {
	return option(func(s *settings) {
		s.clock = c
		if c == nil {
			s.nils = append(s.nils, "Clock(nil)")
		}
	})
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

type settings struct {
	name      string
	limit     time.Duration
	limitFunc func(ctx context.Context) time.Duration
	abandon   bool
	clock     policy.Clock
	system    bool     // clock is the SystemClock
	nils      []string // options given nil, as the caller wrote them
}

func build(limit time.Duration, opts []Option) (*Timeout, error) {
	s := settings{name: kind, limit: limit, clock: policy.SystemClock}
	for _, o := range opts {
		if o == nil {
			s.nils = append(s.nils, "Option(nil)")
			continue
		}
		o.apply(&s)
	}

	faults := fault.For(kind, s.name)
	faults.Nil(s.nils)
	faults.Check(s.name != "", "must not be empty", "Name(%q)", s.name)
	faults.Check(s.limit > 0, "must be greater than 0", "New(%v)", s.limit)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	s.system = s.clock == system
	return &Timeout{settings: s, cause: &ExceededError{Name: s.name, Limit: s.limit}}, nil
}
