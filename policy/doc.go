// Package policy is the contract between Holdfast's policies, and between
// them and yours. It knows none of them.
//
//   - A [Policy] wraps a [Handler] into another Handler; a [Call] is what the
//     innermost Handler invokes.
//   - An [Outcome] is what a finished call says about the dependency; a
//     [Classifier], or the call itself if it is a [Judge], decides it.
//   - [Rejected], [RetryAfter], [ContextError] and [AfterEnd] read the facts that
//     errors carry, so that no policy has to import another.
//   - A [Clock] gives time, [Events] tells observers, a [Description] tells people.
//
// To write a policy, implement Wrap; policytest.Run checks that it keeps the rules.
package policy
