package ratelimit

import (
	"strconv"
	"strings"
	"time"
)

// A Rate is how many calls may begin in a period. Make it with [Per]; [New] refuses
// the zero Rate. Rates are comparable.
type Rate struct {
	n      int
	period time.Duration
}

// Per is a rate of n ≥ 1 calls in each period > 0, spread evenly: the interval is
// exactly period/n, also where that is no whole number of nanoseconds. [New] refuses
// other rates.
func Per(n int, period time.Duration) Rate { return Rate{n: n, period: period} }

// String returns the rate as "100/1s" or "1/24h".
func (r Rate) String() string {
	period := r.period.String()
	if strings.HasSuffix(period, "m0s") {
		period = strings.TrimSuffix(period, "0s")
	}
	if strings.HasSuffix(period, "h0m") {
		period = strings.TrimSuffix(period, "0m")
	}
	return strconv.Itoa(r.n) + "/" + period
}
