package scenario

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/order"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// atOnce is how fast a refused order must be answered, at any pace.
const atOnce = 50 * time.Millisecond

// Measured is what was seen in one part.
type Measured struct {
	Part        string
	Pace        Pace
	Orders      []Reply           // in the order of the answers
	Payment     []payment.Stats   // each time it was read; the last time, after everything had settled
	Circuit     []order.Circuit   // each time it was read
	Order       order.Stats       // at the end
	MaxInFlight int               // calls to Payment at the same time, inside the pipeline
	PaidAgain   []payment.Receipt // what customers who paid again were told
	Asked       []payment.Receipt // what Payment said when it was asked about an order
	Data2       Reply             // of the route that needs no Payment
}

// A Reply is the answer to an order, as its client saw it.
type Reply struct {
	Order  string
	Number int           // 1 for the first of the part's orders, 0 if it is none of them
	At     time.Duration // when it was sent: unscaled, since the part began
	Took   time.Duration // as measured, not unscaled
	Code   int
	Answer order.Answer
}

// Refused tells whether the order never reached Payment.
func (r Reply) Refused() bool { return r.Answer.Calls == 0 }

// Received is the number of requests to charge that reached Payment.
func (m Measured) Received() int { return m.last().Received }

// Charges is the number of charges that Payment made.
func (m Measured) Charges() int { return m.last().Charges }

// Known is the number of questions about an order that were answered.
func (m Measured) Known() int {
	n := 0
	for _, r := range m.Asked {
		if r.Status != "" {
			n++
		}
	}
	return n
}

// Slowest is the time that the slowest of the orders took, unscaled.
func (m Measured) Slowest() time.Duration { return m.Pace.Unscaled(slowest(m.Orders)) }

// Fastest is the time that the fastest of the orders took, unscaled.
func (m Measured) Fastest() time.Duration {
	if len(m.Orders) == 0 {
		return 0
	}
	return m.Pace.Unscaled(slices.MinFunc(m.Orders, byTook).Took)
}

// Refused returns the orders that never reached Payment.
func (m Measured) Refused() []Reply { return m.where(Reply.Refused) }

// With returns the orders that were answered with status.
func (m Measured) With(status string) []Reply {
	return m.where(func(r Reply) bool { return r.Answer.Status == status })
}

// Statuses counts the answers.
func (m Measured) Statuses() map[string]int {
	counts := make(map[string]int)
	for _, r := range m.Orders {
		counts[r.Answer.Status]++
	}
	return counts
}

// State is the state of the breaker at the n-th reading, from 0.
func (m Measured) State(n int) string {
	if n >= len(m.Circuit) {
		return "not read"
	}
	return m.Circuit[n].State
}

// Status is what the customer of an order was told.
func (m Measured) Status(order string) string {
	for _, r := range m.Orders {
		if r.Order == order {
			return r.Answer.Status
		}
	}
	return "no answer"
}

// Transitions are the breaker's, as last read.
func (m Measured) Transitions() []order.Transition {
	if len(m.Circuit) == 0 {
		return nil
	}
	return m.Circuit[len(m.Circuit)-1].Transitions
}

func (m Measured) last() payment.Stats {
	if len(m.Payment) == 0 {
		return payment.Stats{}
	}
	return m.Payment[len(m.Payment)-1]
}

func (m Measured) where(keep func(Reply) bool) []Reply {
	return slices.DeleteFunc(slices.Clone(m.Orders), func(r Reply) bool { return !keep(r) })
}

// slowest is the time that the slowest reply took, as measured.
func slowest(replies []Reply) time.Duration {
	if len(replies) == 0 {
		return 0
	}
	return slices.MaxFunc(replies, byTook).Took
}

func byTook(a, b Reply) int { return cmp.Compare(a.Took, b.Took) }

// quick counts the replies that came at once.
func quick(replies []Reply) int {
	n := 0
	for _, r := range replies {
		if r.Took < atOnce {
			n++
		}
	}
	return n
}
