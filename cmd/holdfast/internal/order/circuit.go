package order

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// remembered is how many transitions a service tells of: an open circuit that is
// tried for weeks must not fill the memory.
const remembered = 100

// Circuit is a breaker's state and counters. Rates are -1 where too few calls were
// recorded to judge.
type Circuit struct {
	Name        string       `json:"name"`
	State       string       `json:"state"`
	Calls       int          `json:"calls"`
	Failures    int          `json:"failures"`
	FailureRate float64      `json:"failureRate"`
	InARow      int          `json:"consecutiveFailures"`
	Openings    int          `json:"openings"`
	Rejected    uint64       `json:"rejected"`
	Late        uint64       `json:"late"`
	RetryInMS   int64        `json:"retryInMs"`
	Transitions []Transition `json:"transitions"` // the latest, oldest first
}

// A Transition is a change of a breaker's state.
type Transition struct {
	At     time.Time `json:"at"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Reason string    `json:"reason"`
}

// circuit reads the breaker. Reading it is what makes a breaker whose open period is
// over tell so: the history comes last.
func (s *Service) circuit() Circuit {
	stats := s.breaker.Stats()
	return Circuit{
		Name:        s.breaker.Name(),
		State:       stats.State.String(),
		Calls:       stats.Calls,
		Failures:    stats.Failures,
		FailureRate: stats.FailureRate,
		InARow:      stats.ConsecutiveFailures,
		Openings:    stats.Openings,
		Rejected:    stats.Rejected,
		Late:        stats.Late,
		RetryInMS:   stats.RetryIn.Milliseconds(),
		Transitions: s.history.list(),
	}
}

// history is an observer that remembers transitions.
type history struct {
	mu          sync.Mutex // guards the field below
	transitions []Transition
}

// Observe implements [policy.Observer].
func (h *history) Observe(_ context.Context, e policy.Event) {
	if e.Kind != policy.CircuitChanged {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.transitions) == remembered {
		h.transitions = slices.Delete(h.transitions, 0, 1)
	}
	h.transitions = append(h.transitions, Transition{At: e.Time, From: e.From, To: e.To, Reason: e.Reason})
}

func (h *history) list() []Transition {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Transition{}, h.transitions...) // [] in JSON, also when empty
}
