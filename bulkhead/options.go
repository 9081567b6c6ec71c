package bulkhead

import (
	"math"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast/internal/fault"
	"github.com/holdfast-go/holdfast/policy"
)

const (
	kind    = "bulkhead"
	forever = time.Duration(math.MaxInt64)
)

// An Option changes a setting of [New] or [Build]. The last of two equal options wins.
// None may be nil, nor a clock that is given to one.
type Option interface{ apply(*settings) }

// Name names the bulkhead in events, errors and descriptions; not empty. Default:
// "bulkhead".
func Name(name string) Option {
	return option(func(s *settings) { s.name = name })
}

// MaxQueue allows n ≥ 0 calls to wait for a slot. Default: 0, a call that finds no
// slot free is refused at once.
func MaxQueue(n int) Option {
	return option(func(s *settings) { s.maxQueue = n })
}

// MaxWait bounds each wait in the queue to d ≥ 0; a call that has waited so long is
// refused. With 0 nobody waits, whatever [MaxQueue] says. Default: as long as ctx
// allows.
func MaxWait(d time.Duration) Option {
	return option(func(s *settings) { s.maxWait = d })
}

// Clock gives the bulkhead the time. Default: [policy.SystemClock].
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
	name     string
	limit    int
	maxQueue int
	maxWait  time.Duration
	room     int64 // for those who hold a slot or wait for one
	clock    policy.Clock
	nils     []string // options given nil, as the caller wrote them
}

func build(limit int, opts []Option) (*Bulkhead, error) {
	s := settings{name: kind, limit: limit, maxWait: forever, clock: policy.SystemClock}
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
	faults.Check(s.limit >= 1, "must be at least 1", "New(%d)", s.limit)
	faults.Check(s.maxQueue >= 0, "must be at least 0", "MaxQueue(%d)", s.maxQueue)
	faults.Check(s.maxWait >= 0, "must be at least 0", "MaxWait(%v)", s.maxWait)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	s.room = int64(limit)
	if s.maxWait > 0 {
		s.room += min(int64(s.maxQueue), math.MaxInt64-s.room)
	}
	return &Bulkhead{settings: s, slots: semaphore.NewWeighted(int64(limit))}, nil
}
