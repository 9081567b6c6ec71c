package holdfast

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// The kinds that the order knows. A policy of another kind may stand anywhere.
const (
	kindTimeout   = "timeout"
	kindBulkhead  = "bulkhead"
	kindRateLimit = "ratelimit"
	kindBreaker   = "breaker"
	kindRetry     = "retry"
	kindFallback  = "fallback"
)

// layer is a policy as the order sees it.
type layer struct {
	policy.Description

	policy policy.Policy
	label  string
	arg    int // which argument of Compose it came in, from 1
}

func layersOf(policies []policy.Policy) []layer {
	var layers []layer
	for i, arg := range policies {
		if isNil(arg) {
			continue
		}
		for _, p := range flatten(arg) {
			layers = append(layers, layer{Description: describe(p), policy: p, label: label(p), arg: i + 1})
		}
	}
	return layers
}

// checkOrder is nil if policies, from the call outward, can work in this order. Else
// it tells every fault, and the call that is right.
func checkOrder(policies []policy.Policy) error {
	var faults []string
	for i, p := range policies {
		if isNil(p) {
			faults = append(faults, fmt.Sprintf("policy %d is nil", i+1))
		}
	}
	layers := layersOf(policies)
	for i, outer := range layers {
		for _, inner := range layers[:i] {
			if inner.arg == outer.arg { // inside one nested pipeline, which checked it or did not want to
				continue
			}
			if fault := pairFault(inner, outer); fault != "" {
				faults = append(faults, fault)
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return errors.New("holdfast: Compose: " + strings.Join(faults, "; ") + "; write " + rightCall(layers))
}

// pairFault tells what is wrong with outer around inner, or "".
func pairFault(inner, outer layer) string {
	switch {
	case same(inner.policy, outer.policy):
		return fmt.Sprintf("%s is given twice, as policies %d and %d: one call would count twice",
			outer.label, inner.arg, outer.arg)
	case inner.Kind == kindRetry && outer.Kind == kindBreaker:
		return fmt.Sprintf("%s is inside %s, which would not see its attempts, nor end them once it is open",
			inner.label, outer.label)
	case inner.Kind == kindFallback && slices.Contains([]string{kindRetry, kindBreaker, kindBulkhead}, outer.Kind):
		return fmt.Sprintf("%s is inside %s, which would take its answers for the dependency's",
			inner.label, outer.label)
	}
	innerLimit, hasInner := inner.limit()
	outerLimit, hasOuter := outer.limit()
	if hasInner && hasOuter && outerLimit <= innerLimit {
		return fmt.Sprintf("the outer %s is not longer than %s inside it, which would never strike",
			outer.label, inner.label)
	}
	return ""
}

// limit is a timeout's, where it is the same for every call.
func (l layer) limit() (time.Duration, bool) {
	v := l.Param("limit")
	if l.Kind != kindTimeout || v.Kind() != slog.KindDuration {
		return 0, false
	}
	return v.Duration(), true
}

func (l layer) attempts() int64 {
	if v := l.Param("attempts"); l.Kind == kindRetry && v.Kind() == slog.KindInt64 {
		return v.Int64()
	}
	return 1
}

// waits tells whether calls may queue in l before they are run.
func (l layer) waits() bool {
	switch l.Kind {
	case kindBulkhead:
		maxWait := l.Param("max_wait") // absent: as long as ctx allows
		return positive(l.Param("max_queue")) && (maxWait.Kind() != slog.KindDuration || positive(maxWait))
	case kindRateLimit:
		return positive(l.Param("max_wait"))
	default:
		return false
	}
}

func positive(v slog.Value) bool {
	switch v.Kind() {
	case slog.KindInt64:
		return v.Int64() > 0
	case slog.KindDuration:
		return v.Duration() > 0
	default:
		return false
	}
}

// rightCall shows layers in the documented order, each once, the shortest timeout
// innermost and longer ones outside the retry.
func rightCall(layers []layer) string {
	limits := limitsOf(layers)
	rank := map[string]int{
		kindTimeout: 0, kindBulkhead: 1, kindRateLimit: 2, kindBreaker: 3, kindRetry: 4, kindFallback: 5 + len(limits),
	}

	type ranked struct {
		layer
		rank int
	}
	var call []ranked
	last := 0
	for _, l := range layers {
		if slices.ContainsFunc(call, func(r ranked) bool { return r.covers(l) }) {
			continue
		}
		if known, ok := rank[l.Kind]; ok { // another kind stays behind what it follows
			last = known
		}
		if limit, ok := l.limit(); ok && limit > limits[0] {
			last = rank[kindRetry] + slices.Index(limits, limit)
		}
		call = append(call, ranked{l, last})
	}
	slices.SortStableFunc(call, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	labels := make([]string, len(call))
	for i, r := range call {
		labels[i] = r.label
	}
	return "Compose(" + strings.Join(labels, ", ") + ")"
}

// limitsOf returns the limits of the timeouts among layers, in order, each once.
func limitsOf(layers []layer) []time.Duration {
	var limits []time.Duration
	for _, l := range layers {
		if limit, ok := l.limit(); ok {
			limits = append(limits, limit)
		}
	}
	slices.Sort(limits)
	return slices.Compact(limits)
}

// covers tells whether other need not stand beside l: it is the same, or as long a timeout.
func (l layer) covers(other layer) bool {
	mine, timed := l.limit()
	others, alike := other.limit()
	return same(l.policy, other.policy) || timed && alike && mine == others
}

// Advice tells, in a sentence each, what in p is legal but unwise.
func (p *Pipeline) Advice() []string {
	var advice []string
	layers := layersOf(p.policies)
	for i, l := range layers {
		inside := layers[:i]
		switch l.Kind {
		case kindBreaker:
			advice = append(advice, adviseBreaker(l, inside)...)
		case kindBulkhead:
			if l.Param("max_wait").Kind() == slog.KindDuration && !positive(l.Param("max_queue")) {
				advice = append(advice, fmt.Sprintf("%s has a MaxWait but no MaxQueue: nobody waits in it.", l.label))
			}
			if b, ok := first(inside, kindBreaker); ok {
				advice = append(advice, fmt.Sprintf("%s is outside %s: calls that the open circuit refuses take its slots.",
					l.label, b.label))
			}
		case kindRetry:
			if _, ok := first(layers, kindBreaker); !ok {
				advice = append(advice, fmt.Sprintf("%s has no breaker inside it: in an outage it multiplies the load.", l.label))
			}
			if inner, ok := first(inside, kindRetry); ok {
				product := l.attempts()
				for _, other := range inside {
					product = saturatingProduct(product, other.attempts())
				}
				advice = append(advice, fmt.Sprintf("%s is around %s: their attempts multiply, to %d.", l.label, inner.label, product))
			}
		case kindTimeout:
			advice = append(advice, adviseTotal(l, inside)...)
		}
	}
	return advice
}

func adviseBreaker(b layer, inside []layer) []string {
	var advice []string
	if _, ok := first(inside, kindTimeout); !ok {
		advice = append(advice, fmt.Sprintf("%s has no timeout inside it: calls that hang are never counted.", b.label))
	}
	if b.Param("slow_calls").Kind() == slog.KindAny && b.Param("slow_is_failure").Kind() == slog.KindAny {
		return advice
	}
	for _, l := range inside {
		if l.waits() {
			advice = append(advice, fmt.Sprintf("%s counts slow calls around %s, whose queue then counts as slow.",
				b.label, l.label))
		}
	}
	return advice
}

// adviseTotal looks at the retries inside total that have a timeout inside them.
func adviseTotal(total layer, inside []layer) []string {
	limit, ok := total.limit()
	if !ok {
		return nil
	}
	var advice []string
	for i, r := range inside {
		each := time.Duration(math.MaxInt64)
		for _, l := range inside[:i] {
			if inner, ok := l.limit(); ok {
				each = min(each, inner)
			}
		}
		if r.Kind != kindRetry || each == math.MaxInt64 {
			continue
		}
		if need := time.Duration(saturatingProduct(r.attempts(), int64(each))); need > limit {
			advice = append(advice, fmt.Sprintf("%s cannot make all its attempts within %s: %d of %s take %s, without the waits.",
				r.label, total.label, r.attempts(), each, need))
		}
	}
	return advice
}

// saturatingProduct of two positive numbers.
func saturatingProduct(a, b int64) int64 {
	if a > math.MaxInt64/max(b, 1) {
		return math.MaxInt64
	}
	return a * b
}

func first(layers []layer, kind string) (layer, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return l.Kind == kind })
	if i < 0 {
		return layer{}, false
	}
	return layers[i], true
}

// same tells whether a and b are one breaker, bulkhead or limiter.
func same(a, b policy.Policy) bool {
	return identical(a, b) && slices.Contains([]string{kindBreaker, kindBulkhead, kindRateLimit}, describe(a).Kind)
}

// identical tells whether a and b are the same pointer. Others, such as a policy.Func,
// cannot be compared.
func identical(a, b policy.Policy) bool {
	return reflect.ValueOf(a).Kind() == reflect.Pointer && a == b
}

// isNil sees a typed nil too.
func isNil(p policy.Policy) bool {
	if p == nil {
		return true
	}
	v := reflect.ValueOf(p)
	switch v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
}
