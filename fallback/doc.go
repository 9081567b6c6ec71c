// Package fallback answers in place of a call that failed: with a fixed value, or
// with what a function makes of the error.
//
// It stands outermost, where it sees what is left after every other policy has
// tried. It runs once per call, never when the caller has cancelled; after the
// caller's deadline it does run, with a ctx that is done.
package fallback
