package cases

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// A Case is one thing that several implementations can do.
type Case struct {
	Key   string // names it in benchmarks, files and goals
	Title string
	About string // what is done, with which settings

	// Work is the protected call; nil stands for [Succeed].
	Work func() Work
	// Cancellable has the calls made under a context that could be cancelled.
	Cancellable bool

	Implementations []Implementation
}

// All returns every case, in the order of the report.
func All() []Case {
	return []Case{
		floors(),
		breakerConsecutive(), breakerCount(), breakerTime(), breakerSlow(), breakerOpen(),
		bulkheadRefusing(), bulkheadQueueing(),
		rateLimit(),
		retrySuccess(), retryFailing(),
		timeoutIgnored(), timeoutDone(), timeoutAbandoned(),
		fallbackUnused(), fallbackUsed(),
		guarded(), guardedUntimed(),
		full(), fullUntimed(), fullCancellable(),
		closure(), structResult(),
		observed(),
	}
}

// Context is a context for the case's calls.
func (c Case) Context() (context.Context, context.CancelFunc) {
	if c.Cancellable {
		return context.WithCancel(context.Background())
	}
	return context.Background(), func() {}
}

// NewWork is the case's work, under ctx.
func (c Case) NewWork(ctx context.Context) Work {
	work := Succeed()
	if c.Work != nil {
		work = c.Work()
	}
	work.Context = ctx
	return work
}

// Kind says whose code an [Implementation] is.
type Kind uint8

// The kinds. A Yardstick does something else than its case asks for, and is shown for
// scale only.
const (
	Ours Kind = iota + 1
	Peer
	Floor
	Yardstick
)

// An Implementation is one way to do a case. The first of Ours is what the others are
// compared with.
type Implementation struct {
	Name string
	Kind Kind
	Note string // what differs, and how it is used
	New  func(s *Setup) Loop
}

// A Loop makes n calls of w and returns the last one's outcome. Several goroutines may
// be in it at the same time.
type Loop func(n int, w Work) (*Result, error)

// Setup is what implementations are built with.
type Setup struct {
	Slots    int           // of a bulkhead
	Tokens   int           // of a rate limiter, per Period and at once
	Period   time.Duration //
	Limit    time.Duration // of a timeout
	Breaker  policy.Policy // for ours, in place of one of their own
	Observer policy.Observer

	cleanups []func()
}

// NewSetup returns the settings that are measured: no limit is ever reached.
func NewSetup() *Setup {
	return &Setup{
		Slots:    2_000,
		Tokens:   1_000_000,
		Period:   time.Millisecond,
		Limit:    time.Second,
		Observer: policy.ObserverFunc(func(context.Context, policy.Event) {}),
	}
}

// Cleanup has f run by Close.
func (s *Setup) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// Close frees what was built with s.
func (s *Setup) Close() {
	for _, f := range s.cleanups {
		f()
	}
	s.cleanups = nil
}

// ours, peer, floor and yardstick are short for Implementations.

func ours(name, note string, build func(s *Setup) Loop) Implementation {
	return Implementation{Name: name, Kind: Ours, Note: note, New: build}
}

func peer(name, note string, build func(s *Setup) Loop) Implementation {
	return Implementation{Name: name, Kind: Peer, Note: note, New: build}
}

func floor(name, note string, build func(s *Setup) Loop) Implementation {
	return Implementation{Name: name, Kind: Floor, Note: note, New: build}
}

func yardstick(name, note string, build func(s *Setup) Loop) Implementation {
	return Implementation{Name: name, Kind: Yardstick, Note: note, New: build}
}
