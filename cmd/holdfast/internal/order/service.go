// Package order is the lab's caller: it takes orders, and charges each with an
// http.Client over a pipeline of Holdfast's policies.
package order

import (
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/holdfasthttp"
)

// Config says how an order service is made.
type Config struct {
	Payment string          // base URL
	Charge  holdfast.Layers // around the request that charges; none: no protection

	// ChargeOptions are those of the transport that charges. Without any, a charge is
	// not repeated once it may have reached Payment, whatever Charge.Retry says.
	ChargeOptions []holdfasthttp.Option

	// Around the question whether an order was paid. Its breaker, if any, is not
	// Charge's: questions are answered while charges hang, so an answer to one would
	// close the circuit for the other, and an open circuit would forbid to ask.
	Ask holdfast.Layers
}

// A Service is the order service. Make it with [New]; it is safe for concurrent use.
type Service struct {
	payment client
	charge  *holdfast.Pipeline
	breaker *breaker.Breaker // charge's; nil if it has none
	history history

	waiting  gauge // orders being answered
	inFlight gauge // charges on the wire, inside the pipeline, until their header comes
}

// New makes an order service. Its pipelines are built here, once, and shared by all
// requests: their breaker and bulkhead have to see every call. The caller must call
// Close.
func New(c Config) *Service {
	s := &Service{charge: c.Charge.Compose(), breaker: c.Charge.Breaker}
	s.payment = newClient(c, s.charge, c.Ask.Compose(), &s.inFlight)
	if s.breaker != nil {
		s.breaker.Subscribe(&s.history)
	}
	return s
}

// Close closes the connections to Payment that are idle.
func (s *Service) Close() { s.payment.close() }

// Pipeline shows the policies around a charge, outermost first.
func (s *Service) Pipeline() string { return s.charge.String() }

// MaxInFlight is the most calls to Payment that ran at the same time.
func (s *Service) MaxInFlight() int { _, most := s.inFlight.read(); return most }
