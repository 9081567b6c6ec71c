package holdfast

import (
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/ratelimit"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Layers is a pipeline in the documented order, its fields from the call outward. A nil
// layer is absent. Policies of your own are chained by [Compose], in the same order.
type Layers struct {
	Name      string             // of the pipeline, for events and descriptions
	Timeout   *timeout.Timeout   // bounds each attempt
	Bulkhead  *bulkhead.Bulkhead // bounds concurrent attempts
	RateLimit *ratelimit.Limiter // bounds attempts per second
	Breaker   *breaker.Breaker   // shared: one per dependency
	Retry     *retry.Retry       // repeats failed attempts
	Total     *timeout.Timeout   // bounds the call, retries and waits included
	Fallback  *fallback.Fallback // answers for what is left
}

// Compose chains the layers. It panics if Total is not longer than Timeout.
func (l Layers) Compose() *Pipeline { return Compose(l.policies()...).Named(l.Name) }

// Build is [Layers.Compose] with an error instead of a panic, for limits that come from
// a configuration.
func (l Layers) Build() (*Pipeline, error) {
	p, err := Build(l.policies()...)
	if err != nil {
		return nil, err
	}
	return p.Named(l.Name), nil
}

func (l Layers) policies() []policy.Policy {
	var policies []policy.Policy
	for _, p := range []policy.Policy{l.Timeout, l.Bulkhead, l.RateLimit, l.Breaker, l.Retry, l.Total, l.Fallback} {
		if !isNil(p) {
			policies = append(policies, p)
		}
	}
	return policies
}
