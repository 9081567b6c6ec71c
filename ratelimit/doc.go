// Package ratelimit bounds how many calls begin within a time: so many per period,
// and at most a burst of them at once after any idle time. What is over the rate waits
// in a line, first come, first served, or is refused at once.
//
// It follows the generic cell rate algorithm (ITU-T I.371): one theoretical arrival
// time, in exact arithmetic, so there is no window with an edge at which twice the
// rate passes, and no rate that rounding bends.
//
// It stands inside the breaker, where calls that an open circuit refuses cost no
// token, and around the bulkhead.
package ratelimit
