// Package bulkhead bounds how many calls run at the same time, so that one slow
// dependency cannot take every goroutine and connection there is. What is over the
// limit waits in a queue, first come, first served, or is refused at once.
//
// It stands inside the breaker, where calls that an open circuit refuses occupy no
// slot, and around the timeout of the attempt.
package bulkhead
