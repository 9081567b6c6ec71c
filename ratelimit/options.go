package ratelimit

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/fault"
	"github.com/holdfast-go/holdfast/policy"
)

const kind = "ratelimit"

// An Option changes a setting of [New] or [Build]. The last of two equal options wins.
// None may be nil, nor a clock that is given to one.
type Option interface{ apply(*settings) }

// Name names the limiter in events, errors and descriptions; not empty. Default:
// "ratelimit".
func Name(name string) Option {
	return option(func(s *settings) { s.name = name })
}

// MaxWait lets a call in a pipeline wait up to d ≥ 0 for its token; one that would
// have to wait longer is refused at once. [Limiter.Wait] and [Limiter.Allow] do not
// heed it. Default: 0, a call that finds no token is refused at once.
func MaxWait(d time.Duration) Option {
	return option(func(s *settings) { s.maxWait = d })
}

// Clock gives the limiter the time. Default: [policy.SystemClock].
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
	name    string
	rate    Rate
	burst   int
	maxWait time.Duration
	clock   policy.Clock
	nils    []string // options given nil, as the caller wrote them
}

func build(r Rate, burst int, opts []Option) (*Limiter, error) {
	s := settings{name: kind, rate: r, burst: burst, clock: policy.SystemClock}
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
	if r == (Rate{}) {
		faults.Check(false, "must be a rate made with Per", "New(Rate{}, %d)", burst)
	} else {
		faults.Check(r.n >= 1 && r.period > 0, "must be at least 1 call in more than 0s", "Per(%d, %v)", r.n, r.period)
	}
	faults.Check(s.burst >= 1, "must be at least 1", "New(%v, %d)", r, burst)
	faults.Check(s.maxWait >= 0, "must be at least 0", "MaxWait(%v)", s.maxWait)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	start := min(0, s.clock.Elapsed()) // below 0 against the rules, but where it starts all the same
	return &Limiter{settings: s, state: newState(r, burst, start)}, nil
}
