// Package retry repeats a call that failed in a way that may pass: after a wait that
// grows from attempt to attempt, a limited number of times.
//
// It stands outside the breaker, so that every attempt is counted and an open circuit
// ends the retries at once, and inside the total timeout. What a policy has refused
// is never repeated, nor anything once the caller has given up.
package retry
