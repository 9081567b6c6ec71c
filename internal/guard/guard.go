// Package guard keeps a callback's panic from hiding the panic of a call.
package guard

// Quiet runs f and drops its panic. It is for telling others about a call that is
// itself panicking: the call's panic is the one that must reach the caller.
func Quiet(f func()) {
	done := false
	defer func() {
		if !done {
			recover()
		}
	}()
	f()
	done = true
}
