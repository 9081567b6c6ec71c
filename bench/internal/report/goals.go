package report

import (
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// A goal is a ratio of our time to another's, in the same run.
type goal struct {
	text    string
	ours    ref
	mode    measure.Mode
	against []ref        // the cheapest counts
	other   measure.Mode // of against, where it is not mode
	across  bool         // other counts
	atMost  float64
	spent   string // on what the time goes, where the goal may be missed: from CPU profiles
}

// An allocation goal bounds how many allocations a call makes.
type allocationGoal struct {
	text   string
	ours   ref
	atMost float64
}

// A ref names an implementation of a case.
type ref struct{ key, name string }

func in(key string, names ...string) []ref {
	refs := make([]ref, len(names))
	for i, name := range names {
		refs[i] = ref{key, name}
	}
	return refs
}

var (
	limiters = []string{"x/time/rate", "uber ratelimit", "failsafe-go, permits", "failsafe-go, Get", "fortify"}
	retries  = []string{"avast/retry-go", "go-retry", "backoff v4", "backoff v5", "go-resiliency", "failsafe-go, Get"}
	counters = []string{"failsafe-go, permits", "failsafe-go, Get"}
)

// On what the time goes, for several goals each.
const (
	spentBreaker  = "the pipeline's frames are half of it; then the deferred settlement that a panic or Goexit must not escape, and asking whether the call judges itself, as an HTTP request does"
	spentWindow   = "the peer's permits are taken and given back by hand, around no function: nothing settles there if the call panics. The pipeline is a quarter of ours, the window's lock another"
	spentLimiter  = "one reading of the clock is three fifths, as with the peers; the pipeline around it is the difference"
	spentBulkhead = "the semaphore itself is two fifths; the pipeline and the settlement the rest, and the count of those inside, without which a queue's places are given out wrongly"
)

var goals = []goal{
	{
		text: "consecutive breaker: at most 5 × one packed word", ours: ref{"breaker-consecutive", "holdfast"},
		against: in("breaker-consecutive", "one packed word"), atMost: 5,
		spent: spentBreaker,
	},
	{
		text: "consecutive breaker: a tenth of gobreaker", ours: ref{"breaker-consecutive", "holdfast"},
		against: in("breaker-consecutive", "gobreaker"), atMost: 0.1,
		spent: spentBreaker,
	},
	{
		text: "consecutive breaker: cheaper at two processors than at one", ours: ref{"breaker-consecutive", "holdfast"},
		mode: measure.Two, against: in("breaker-consecutive", "holdfast"), other: measure.One, across: true, atMost: 1,
	},
	{
		text: "count window: cheaper than every peer's", ours: ref{"breaker-count", "holdfast"},
		against: in("breaker-count", counters...), atMost: 1,
		spent: spentWindow,
	},
	{
		text: "count window: cheaper than every peer's", ours: ref{"breaker-count", "holdfast"},
		mode: measure.Two, against: in("breaker-count", counters...), atMost: 1,
		spent: spentWindow,
	},
	{
		text: "time window: half of gobreaker's rolling one", ours: ref{"breaker-time", "holdfast"},
		against: in("breaker-time", "gobreaker, rolling"), atMost: 0.5,
	},
	{
		text: "slow calls, last 100: at most gobreaker without them", ours: ref{"breaker-slow", "holdfast"},
		against: in("breaker-slow", "gobreaker, without slow calls"), atMost: 1,
	},
	{
		text: "slow calls, time window: at most gobreaker without them", ours: ref{"breaker-slow", "holdfast, time window"},
		against: in("breaker-slow", "gobreaker, without slow calls"), atMost: 1,
	},
	{
		text: "refusal: at most 1.25 × gobreaker's", ours: ref{"breaker-open", "holdfast"},
		against: in("breaker-open", "gobreaker"), atMost: 1.25,
	},
	{
		text: "bulkhead: at most 1.25 × a bare x/sync semaphore", ours: ref{"bulkhead", "holdfast"},
		against: in("bulkhead", "x/sync semaphore"), atMost: 1.25,
		spent: spentBulkhead,
	},
	{
		text: "bulkhead with a queue: at most 1.25 × a bare x/sync semaphore", ours: ref{"bulkhead-queue", "holdfast"},
		against: in("bulkhead-queue", "x/sync semaphore"), atMost: 1.25,
		spent: spentBulkhead,
	},
	{
		text: "rate limiter by hand: at most the cheapest peer", ours: ref{"ratelimit", "holdfast, by hand"},
		against: in("ratelimit", limiters...), atMost: 1,
	},
	{
		text: "rate limiter by hand: at most the cheapest peer", ours: ref{"ratelimit", "holdfast, by hand"},
		mode: measure.Two, against: in("ratelimit", limiters...), atMost: 1,
	},
	{
		text: "rate limiter in a pipeline: at most the cheapest peer", ours: ref{"ratelimit", "holdfast, in a pipeline"},
		against: in("ratelimit", limiters...), atMost: 1,
		spent: spentLimiter,
	},
	{
		text: "rate limiter in a pipeline: at most the cheapest peer", ours: ref{"ratelimit", "holdfast, in a pipeline"},
		mode: measure.Two, against: in("ratelimit", limiters...), atMost: 1,
		spent: spentLimiter,
	},
	{
		text: "retry on success: at most fortify's", ours: ref{"retry-success", "holdfast"},
		against: in("retry-success", "fortify"), atMost: 1,
		spent: "one reading of the clock is three quarters: ExhaustedError and Attempt tell the time since the call began, which nobody knows any more once an attempt has failed",
	},
	{
		text: "fallback on success: at most fortify's", ours: ref{"fallback-unused", "holdfast"},
		against: in("fallback-unused", "fortify"), atMost: 1,
		spent: "the pipeline's frames",
	},
	{
		text: "timeout, ctx never looked at: a quarter of context.WithTimeout", ours: ref{"timeout-ignored", "holdfast"},
		against: in("timeout-ignored", "context.WithTimeout"), atMost: 0.25,
	},
	{
		text: "timeout, select on Done: at most 1.25 × context.WithTimeout", ours: ref{"timeout-done", "holdfast"},
		against: in("timeout-done", "context.WithTimeout"), atMost: 1.25,
	},
	{
		text: "retry + breaker + timeout: a fifth of fortify's", ours: ref{"retry-breaker-timeout", "holdfast"},
		against: in("retry-breaker-timeout", "fortify"), atMost: 0.2,
	},
	{
		text: "retry + breaker + timeout: a tenth of failsafe-go's", ours: ref{"retry-breaker-timeout", "holdfast"},
		against: in("retry-breaker-timeout", "failsafe-go, GetWithExecution"), atMost: 0.1,
	},
	{
		text: "three failing attempts: a fifth of any peer", ours: ref{"retry-failing", "holdfast"},
		against: in("retry-failing", retries...), atMost: 0.2,
		spent: "a ctx of its own for each further attempt, an error that tells attempts, time and cause, two readings of the clock, and a look into each error for refusals, Permanent and Retry-After",
	},
	{
		text: "unobserved events: one atomic load (a quarter more is noise)", ours: ref{"floors", "+ policy.Events, unobserved"},
		against: in("floors", "+ one atomic load"), atMost: 1.25,
	},
}

var allocationGoals = []allocationGoal{
	{"refusal: at most 1 allocation", ref{"breaker-open", "holdfast"}, 1},
	{"timeout, ctx never looked at: at most 1 allocation", ref{"timeout-ignored", "holdfast"}, 1},
	{"retry + breaker + timeout: at most 1 allocation", ref{"retry-breaker-timeout", "holdfast"}, 1},
	{"retry + breaker: no allocation", ref{"retry-breaker", "holdfast"}, 0},
	{"the full pipeline without its timeout: no allocation", ref{"pipeline-untimed", "holdfast"}, 0},
}

// A Verdict is a goal with what was measured.
type Verdict struct {
	Goal, Mode, Against, Found, Limit string
	Met                               bool
	Spent                             string // on what the time goes, if that was looked at
}

// Verdicts judges every goal of which both sides were measured.
func (r Report) Verdicts() []Verdict {
	var verdicts []Verdict
	for _, g := range goals {
		if v, ok := r.judge(g); ok {
			verdicts = append(verdicts, v)
		}
	}
	for _, g := range allocationGoals {
		if m, ok := r.find(g.ours); ok {
			allocs := math.Round(m.Allocs)
			verdicts = append(verdicts, Verdict{
				Goal: g.text, Found: fmt.Sprintf("%.0f", allocs), Limit: fmt.Sprintf("%.0f", g.atMost), Met: allocs <= g.atMost,
			})
		}
	}
	return verdicts
}

func (r Report) judge(g goal) (Verdict, bool) {
	ours, ok := r.find(g.ours)
	if !ok {
		return Verdict{}, false
	}
	otherMode := g.mode
	if g.across {
		otherMode = g.other
	}
	worst, against := 0.0, ""
	for _, at := range g.against {
		other, ok := r.find(at)
		if !ok {
			return Verdict{}, false
		}
		if ratio := ours.Time[g.mode].Over(other.Time[otherMode]); ratio > worst {
			worst, against = ratio, at.name
		}
	}
	if g.across {
		against += ", " + otherMode.String()
	}
	return Verdict{
		Goal: g.text, Mode: g.mode.String(), Against: against,
		Found: ratio(worst), Limit: ratio(g.atMost), Met: worst <= g.atMost, Spent: g.spent,
	}, true
}

// Met is how many of the verdicts say so.
func Met(verdicts []Verdict) int {
	n := 0
	for _, v := range verdicts {
		if v.Met {
			n++
		}
	}
	return n
}
