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
// layer is absent.
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
func (l Layers) Compose() *Pipeline {
	var policies []policy.Policy
	for _, p := range []policy.Policy{l.Timeout, l.Bulkhead, l.RateLimit, l.Breaker, l.Retry, l.Total, l.Fallback} {
		if !isNil(p) {
			policies = append(policies, p)
		}
	}
	return Compose(policies...).Named(l.Name)
}
