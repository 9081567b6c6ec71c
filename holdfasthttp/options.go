package holdfasthttp

import (
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/fault"
)

const defaultMaxReplay = 64 << 10

// An Option changes a setting of [NewTransport] or [NewHandler]. The last of two equal
// options wins; [RetryIdempotentOnly] and [RetryAll] are equal. None may be nil, nor a
// func that is given to one. A handler takes [Keyed] only.
type Option interface{ apply(*settings) }

// RetryIdempotentOnly repeats GET, HEAD, OPTIONS, TRACE, PUT and DELETE, and any
// request with an Idempotency-Key header. Others are repeated only after an error that
// proves that nothing was sent: the connection could not be made. It is the default.
func RetryIdempotentOnly() Option {
	return transportOption("RetryIdempotentOnly()", func(s *settings) { s.retryAll = false })
}

// RetryAll repeats every method, for servers that do not mind to see a POST twice.
// Default: [RetryIdempotentOnly].
func RetryAll() Option {
	return transportOption("RetryAll()", func(s *settings) { s.retryAll = true })
}

// MaxReplay is how much of a request's body is kept, in bytes ≥ 0, while it is sent, to
// be sent again, where the request has no GetBody. A request whose body is longer is
// sent once only. A body is kept only if the request may be repeated. Default: 64 KiB.
func MaxReplay(bytes int64) Option {
	return transportOption("MaxReplay", func(s *settings) { s.maxReplay = bytes })
}

// IdempotencyKey sets the header Idempotency-Key to what f returns, the same in every
// attempt, which makes any method one that is repeated. f is called once per call,
// concurrently, and must not change the request. It is not called for a request that has
// the header; "" sets none. Default: no header is set.
func IdempotencyKey(f func(*http.Request) string) Option {
	return transportOption("IdempotencyKey", func(s *settings) {
		s.idempotencyKey = f
		if f == nil {
			s.nils = append(s.nils, "IdempotencyKey(nil)")
		}
	})
}

// BodyTimeout bounds to d > 0 how long each read of a response's body may wait for data,
// which no timeout policy does. A read that waits longer fails with a [BodyTimeoutError], and
// the connection is closed. A protocol that the connection was switched to is not
// bounded. Default: no limit.
func BodyTimeout(d time.Duration) Option {
	return transportOption("BodyTimeout", func(s *settings) { s.bodyTimeout, s.bodyTimeoutSet = d, true })
}

// Keyed gives each key a pipeline of its own, which make makes when the key is first
// used: one per host, say. Requests with the empty key use the pipeline given to
// NewTransport or NewHandler. Both functions are called concurrently, make at most once
// at a time for a key, and with no lock held; if it panics, so does the call, and the
// next one tries again. make must not return nil.
//
// At most max ≥ 1 pipelines are kept: the least recently used one is dropped, and a new one
// made if its key comes back. While a call is in flight, a body open, or a circuit of
// it not closed, a pipeline is never dropped; max is exceeded then, until one can go.
// Default: one pipeline for all requests.
func Keyed(key func(*http.Request) string, make func(key string) *holdfast.Pipeline, max int) Option {
	return option(func(s *settings) {
		s.keyed = true
		s.key, s.make, s.max = key, make, max
		if key == nil || make == nil {
			s.nils = append(s.nils, "Keyed(nil)")
		}
	})
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// transportOption is an option that a handler has no use for.
func transportOption(name string, o option) option {
	return func(s *settings) {
		s.transportOnly = append(s.transportOnly, name)
		o(s)
	}
}

type settings struct {
	retryAll       bool
	maxReplay      int64
	idempotencyKey func(*http.Request) string
	bodyTimeout    time.Duration // 0: none
	bodyTimeoutSet bool

	keyed bool
	key   func(*http.Request) string
	make  func(key string) *holdfast.Pipeline
	max   int

	nils          []string // options given nil, as the caller wrote them
	transportOnly []string // options that a handler has no use for
}

// build panics with all faults. The side is "transport" or "handler".
func build(side string, p *holdfast.Pipeline, opts []Option) settings {
	s := settings{maxReplay: defaultMaxReplay}
	for _, o := range opts {
		if o == nil {
			s.nils = append(s.nils, "Option(nil)")
			continue
		}
		o.apply(&s)
	}

	faults := fault.For("holdfasthttp", side)
	faults.Check(p != nil, "must not be nil", "Pipeline(nil)")
	faults.Nil(s.nils)
	faults.Check(s.maxReplay >= 0, "must be at least 0", "MaxReplay(%d)", s.maxReplay)
	faults.Check(!s.bodyTimeoutSet || s.bodyTimeout > 0, "must be greater than 0", "BodyTimeout(%v)", s.bodyTimeout)
	faults.Check(!s.keyed || s.max >= 1, "max must be at least 1", "Keyed(%d)", s.max)
	if side == sideHandler {
		for _, name := range s.transportOnly {
			faults.Check(false, "is for a transport", "%s", name)
		}
	}
	if err := faults.Err(); err != nil {
		panic(err.Error())
	}
	return s
}

const (
	sideTransport = "transport"
	sideHandler   = "handler"
)
