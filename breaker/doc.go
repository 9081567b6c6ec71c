// Package breaker stops calling a dependency that keeps failing, and lets single trials
// find out when it works again.
//
// A circuit is closed while calls go well. When one of its conditions holds, it opens:
// calls are refused at once, with a [CircuitOpenError]. When the open period has
// elapsed it is half-open: a few trials are admitted, and their outcome closes the
// circuit or opens it again. An operator can isolate it at any time.
//
// Share one breaker per dependency between all pipelines that call it. It stands
// outside timeout, bulkhead and rate limit, and inside retry.
package breaker
