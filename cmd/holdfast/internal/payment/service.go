// Package payment is the lab's dependency: a payment provider that can be broken on
// purpose, and that counts what reached it.
package payment

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Mode is how the provider behaves.
type Mode string

// The modes.
const (
	OK    Mode = "ok"    // charges at once
	Slow  Mode = "slow"  // charges after a long wait
	Down  Mode = "down"  // fails at once
	Flaky Mode = "flaky" // fails a share of the requests at once
)

// The states of a payment.
const (
	Paid    = "PAID"
	NotPaid = "NOT_PAID"
)

// A Receipt is the answer to a charge, and to the question whether an order was paid.
type Receipt struct {
	OrderID  string `json:"orderId"`
	Status   string `json:"status"`
	Repeated bool   `json:"repeated,omitempty"` // the answer to an earlier charge, given again
}

// Stats is what reached the provider, and what it did.
type Stats struct {
	Mode     Mode `json:"mode"`
	Received int  `json:"received"` // requests to charge
	Charges  int  `json:"charges"`  // charges that were made
}

// A Service is the provider. Make it with [New]; it is safe for concurrent use. It
// starts in mode ok and not idempotent.
type Service struct {
	slow    time.Duration
	closing chan struct{}
	once    sync.Once

	mu sync.Mutex // guards the fields below

	mode       Mode
	failRate   float64
	idempotent bool
	received   int
	charges    int
	pending    int             // requests being answered
	paid       map[string]bool // by order
}

// New makes a provider that waits for slow before it charges while its mode is Slow.
func New(slow time.Duration) *Service {
	return &Service{slow: slow, closing: make(chan struct{}), mode: OK, paid: make(map[string]bool)}
}

// Close ends the waits of slow requests: they fail.
func (s *Service) Close() { s.once.Do(func() { close(s.closing) }) }

// Stats returns the counters.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Mode: s.mode, Received: s.received, Charges: s.charges}
}

// Pending is the number of requests that are being answered. A slow one counts until
// it has charged, also if its caller has hung up.
func (s *Service) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}

func (s *Service) setMode(mode Mode, failRate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode, s.failRate = mode, failRate
}

func (s *Service) setIdempotent(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idempotent = on
}

// reset forgets counters and payments. Mode and idempotency stay.
func (s *Service) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received, s.charges = 0, 0
	clear(s.paid)
}

// charge takes the money for an order, after a while if the mode is Slow. It does not
// end when its caller hangs up: providers charge in the end.
func (s *Service) charge(order string) (r Receipt, ok bool) {
	mode, done := s.receive(order)
	defer s.leave()
	switch {
	case mode == Down:
		return Receipt{}, false
	case mode == Slow && !done && !s.wait():
		return Receipt{}, false
	}
	return s.take(order), true
}

// receive counts a request, and decides how it is going to be answered.
func (s *Service) receive(order string) (mode Mode, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received++
	s.pending++
	mode = s.mode
	if mode == Flaky && rand.Float64() < s.failRate {
		mode = Down
	}
	return mode, s.idempotent && s.paid[order]
}

func (s *Service) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
}

// wait reports false if the service was closed meanwhile.
func (s *Service) wait() bool {
	timer := time.NewTimer(s.slow)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.closing:
		return false
	}
}

// take charges, once per order if idempotent. Of two requests that waited together,
// the second one finds the order paid.
func (s *Service) take(order string) Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	repeated := s.idempotent && s.paid[order]
	if !repeated {
		s.paid[order] = true
		s.charges++
	}
	return Receipt{OrderID: order, Status: Paid, Repeated: repeated}
}

// ask tells whether an order was paid.
func (s *Service) ask(order string) Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := NotPaid
	if s.paid[order] {
		status = Paid
	}
	return Receipt{OrderID: order, Status: status}
}
