// Package scenario is what the lab can show: outages, the protection against each,
// and what must be seen.
package scenario

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// A Scenario is one row of the lab's table. All its durations are unscaled.
type Scenario struct {
	Name  string
	Shows string
	Note  string        // about the table, if anything; may have several lines
	Takes time.Duration // about
	Parts []Part        // at the same time, each on services of its own

	// Judge makes the checks of what was measured, part by part.
	Judge func(parts []Measured) []Check
}

// A Part is one outage under one kind of protection.
type Part struct {
	Name  string        // empty where it is the only one
	After time.Duration // when it begins, so that parts under load do not disturb each other

	Mode       payment.Mode  // at the beginning; ok if empty
	Slow       time.Duration // how long a slow Payment waits; 5s if zero
	Idempotent bool          // Payment charges each order once, and Order sends the order as Idempotency-Key
	Reckless   bool          // Order repeats charges without one
	Hasty      bool          // do not wait for payments that nobody waits for any more

	Protection protection // nil: none
	Asks       bool       // the part is about questions, and Protection is around those too

	Orders int
	Every  time.Duration // 0: all at once
	// Before, if any, is called before each order is sent.
	Before func(ctx context.Context, b *Bench, number int) error
	// Run sends the orders, and does whatever else the part is about. Default:
	// [Bench.Send].
	Run func(ctx context.Context, b *Bench) error
}

// Pipeline shows the policies through which Order calls Payment, outermost first, at
// full speed.
func (p Part) Pipeline() string { return p.charging(1).Compose().String() }

// charging is around each charge.
func (p Part) charging(pace Pace) holdfast.Layers {
	if p.Protection == nil {
		return holdfast.Layers{}
	}
	return p.Protection(pace)
}

// asking is around each question.
func (p Part) asking(pace Pace) holdfast.Layers {
	switch {
	case p.Protection == nil:
		return holdfast.Layers{}
	case p.Asks:
		return p.Protection(pace)
	default:
		return asking(pace)
	}
}

// All returns the scenarios, in the order in which they tell their story.
func All() []Scenario {
	return slices.Concat(unprotected(), protected(), recoveries(), []Scenario{httpRetry(), timeline()}, loads(), []Scenario{exam()})
}

// Names returns the names of all scenarios.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}

// Find returns the scenario of that name.
func Find(name string) (Scenario, bool) {
	all := All()
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return Scenario{}, false
	}
	return all[i], true
}
