// Package cases holds what the benchmarks measure: per [Case] the same work done by
// Holdfast, by its peers, and by hand-written floors.
//
// Each peer is used as its own documentation says, with settings that mean the same
// as ours. A peer that cannot do a case has no place in it. The tests check, for
// every implementation, that it does what the case says; what they check is the very
// loop that is measured.
package cases
