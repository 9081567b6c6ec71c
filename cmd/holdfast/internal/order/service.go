// Package order is the lab's caller: it takes orders, and charges each through a
// pipeline of Holdfast's policies.
package order

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/loopback"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// Config says how an order service is made.
type Config struct {
	Payment string          // base URL
	Charge  holdfast.Layers // around the call that charges; none: no protection

	// Around the question whether an order was paid. Its breaker, if any, is not
	// Charge's: questions are answered while charges hang, so an answer to one would
	// close the circuit for the other, and an open circuit would forbid to ask.
	Ask holdfast.Layers
}

// A Service is the order service. Make it with [New]; it is safe for concurrent use.
type Service struct {
	payment client
	charge  *holdfast.Pipeline
	ask     *holdfast.Pipeline
	breaker *breaker.Breaker // charge's; nil if it has none
	history history

	waiting  gauge // orders being answered
	inFlight gauge // calls to Payment that are running, inside the pipeline
}

// New makes an order service. Its pipelines are built here, once, and shared by all
// requests: their breaker and bulkhead have to see every call. The caller must call
// Close.
func New(c Config) *Service {
	s := &Service{
		payment: client{http: loopback.NewClient(), base: c.Payment},
		charge:  c.Charge.Compose(),
		ask:     c.Ask.Compose(),
		breaker: c.Charge.Breaker,
	}
	if s.breaker != nil {
		s.breaker.Subscribe(&s.history)
	}
	return s
}

// Close closes the connections to Payment that are idle.
func (s *Service) Close() { s.payment.http.CloseIdleConnections() }

// Pipeline shows the policies around a charge, outermost first.
func (s *Service) Pipeline() string { return s.charge.String() }

// MaxInFlight is the most calls to Payment that ran at the same time.
func (s *Service) MaxInFlight() int { _, most := s.inFlight.read(); return most }

// pay charges an order through the pipeline. A call that a policy refuses reaches
// neither tries nor the gauge.
func (s *Service) pay(ctx context.Context, order string) (*Answer, tries, error) {
	var t tries
	answer, err := holdfast.Do(ctx, s.charge, func(ctx context.Context) (*Answer, error) {
		defer s.inFlight.enter()()
		receipt, err := s.payment.charge(ctx, order)
		t.add(err) // attempts run one after another, on this goroutine
		if err != nil {
			return nil, err
		}
		return paid(receipt), nil
	})
	return answer, t, err
}

// paid asks Payment what became of an order.
func (s *Service) paid(ctx context.Context, order string) (payment.Receipt, error) {
	return holdfast.Do(ctx, s.ask, func(ctx context.Context) (payment.Receipt, error) {
		return s.payment.ask(ctx, order)
	})
}
