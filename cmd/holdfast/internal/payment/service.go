// Package payment is the lab's dependency: a payment provider that can be broken on
// purpose, and that counts what reached it.
package payment

import (
	"errors"
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
	Flaky Mode = "flaky" // fails a share of the requests at once, questions too
)

// How a charge can fail.
var (
	errDown = errors.New("payment provider down")
	errLost = errors.New("the answer was lost") // but the charge was made
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
	Asked    int  `json:"asked"`    // questions whether an order was paid
}

// A Service is the provider. Make it with [New]; it is safe for concurrent use. It
// starts in mode ok and not idempotent.
type Service struct {
	slow    time.Duration
	closing chan struct{}
	once    sync.Once

	mu         sync.Mutex // guards the fields below
	mode       Mode
	flakiness  flakiness
	idempotent bool
	received   int
	charges    int
	asked      int
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
	return Stats{Mode: s.mode, Received: s.received, Charges: s.charges, Asked: s.asked}
}

// Pending is the number of requests that are being answered. A slow one counts until
// it has charged, also if its caller has hung up.
func (s *Service) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}

func (s *Service) setMode(mode Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = mode
}

func (s *Service) setFlaky(f flakiness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode, s.flakiness = Flaky, f
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
	s.received, s.charges, s.asked = 0, 0, 0
	clear(s.paid)
}

// charge takes the money for an order, after a while if the mode is Slow. It does not
// end when its caller hangs up: providers charge in the end.
func (s *Service) charge(order string) (Receipt, error) {
	slow, fate := s.receive(order)
	defer s.leave()
	if fate == errDown || slow && !s.wait() {
		return Receipt{}, errDown
	}
	return s.take(order), fate
}

// receive counts a request, and decides how it is going to be answered.
func (s *Service) receive(order string) (slow bool, fate error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received++
	s.pending++
	switch s.mode {
	case Down:
		return false, errDown
	case Flaky:
		return false, s.flakiness.fate()
	default:
		return s.mode == Slow && !(s.idempotent && s.paid[order]), nil
	}
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
func (s *Service) ask(order string) (Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.mode == Flaky {
		if err := s.flakiness.fate(); err != nil {
			return Receipt{}, err
		}
	}
	status := NotPaid
	if s.paid[order] {
		status = Paid
	}
	return Receipt{OrderID: order, Status: status}, nil
}
