// Package timeout bounds how long a call may take.
//
// The call runs on the caller's goroutine under a ctx with the limit as its
// deadline, so a call that heeds its ctx returns at the limit with an
// [ExceededError]. A call that succeeds late has succeeded: its value is returned.
// [Abandon] answers at the limit even if the call does not heed its ctx.
//
// It stands innermost, where it bounds each attempt of a retry. A second one,
// outside the retry, bounds the call as a whole: name it "total".
package timeout
