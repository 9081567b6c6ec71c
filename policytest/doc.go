// Package policytest helps to test policies, pipelines of them, and code that uses
// them, without a real wait.
//
//   - [Clock] is a time that moves when the test says so.
//   - [Script] is a call that answers step by step.
//   - [Record] keeps the events of policies, in order.
//   - [Run] checks that a policy keeps the rules that the others rely on.
//
// Package testing/synctest does for time what Clock does, and for goroutines too:
// use it for what waits, and Clock for what only reads the time, for a wall clock
// that steps, and where no bubble can be: in examples and benchmarks.
package policytest
