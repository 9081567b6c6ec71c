package retry

import (
	"fmt"
	"math"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// A JitterKind is how waits are spread, so that callers that failed together do not come
// back together. It applies below the cap, so that the cap is spread too.
type JitterKind uint8

// The kinds of jitter. The formulas are those of AWS's "Exponential Backoff And
// Jitter".
const (
	Full         JitterKind = iota + 1 // anywhere in [0, interval]
	Equal                              // anywhere in [interval/2, interval]
	Decorrelated                       // anywhere in [base, 3 × the wait before], up to max; at first in [base, 3 × base]
	None                               // the interval
)

// String returns "full", "equal", "decorrelated", "none", or "jitter(n)" for any other.
func (j JitterKind) String() string {
	switch j {
	case Full:
		return "full"
	case Equal:
		return "equal"
	case Decorrelated:
		return "decorrelated"
	case None:
		return "none"
	default:
		return fmt.Sprintf("jitter(%d)", uint8(j))
	}
}

// strategy is where the intervals come from.
type strategy uint8

const (
	exponential strategy = iota + 1
	constant
	custom
)

func (s strategy) String() string {
	switch s {
	case exponential:
		return "exponential"
	case constant:
		return "constant"
	default:
		return "custom"
	}
}

// delays are the waits of one call, in order. 0 ≤ base ≤ max.
type delays struct {
	strategy  strategy
	jitter    JitterKind
	base, max time.Duration

	doubling backoff.ExponentialBackOff // of exponential
	custom   backoff.BackOff
	previous time.Duration // of Decorrelated
}

func newDelays(strategy strategy, jitter JitterKind, base, max time.Duration) delays {
	d := delays{strategy: strategy, jitter: jitter, base: base, max: max, previous: base}
	if strategy == exponential {
		d.doubling = backoff.ExponentialBackOff{
			InitialInterval: base, Multiplier: 2, MaxInterval: max, Stop: backoff.Stop, Clock: noClock{},
		}
		d.doubling.Reset()
	}
	return d
}

// next is the wait before the next attempt, at least 0. It is not ok once custom says
// Stop. random(n) is a random number below n.
func (d *delays) next(random func(n uint64) uint64) (wait time.Duration, ok bool) {
	if d.strategy == custom {
		wait = d.custom.NextBackOff()
		return max(0, wait), wait != backoff.Stop
	}
	return d.jittered(random), true
}

func (d *delays) jittered(random func(n uint64) uint64) time.Duration {
	switch d.jitter {
	case Full:
		return between(0, d.interval(), random)
	case Equal:
		interval := d.interval()
		return between(interval-interval/2, interval, random)
	case Decorrelated:
		d.previous = between(d.base, min(d.max, triple(d.previous)), random)
		return d.previous
	default:
		return d.interval()
	}
}

func (d *delays) interval() time.Duration {
	if d.strategy == constant {
		return d.base
	}
	return d.doubling.NextBackOff()
}

// between is anywhere in [low, high], where 0 ≤ low ≤ high.
func between(low, high time.Duration, random func(n uint64) uint64) time.Duration {
	return low + time.Duration(random(uint64(high-low)+1))
}

// triple saturates.
func triple(d time.Duration) time.Duration {
	if d > math.MaxInt64/3 {
		return math.MaxInt64
	}
	return 3 * d
}

// noClock spares ExponentialBackOff the readings for an elapsed time that we keep
// ourselves.
type noClock struct{}

func (noClock) Now() time.Time { return time.Time{} }
