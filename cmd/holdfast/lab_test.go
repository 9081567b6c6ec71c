package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/scenario"
)

// The lab itself, at the speed of make demo; those scenarios at the same time that
// send few orders. A machine that is too busy for it proves nothing either way.
func TestLab(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	for _, s := range scenario.All() {
		t.Run(s.Name, func(t *testing.T) {
			if s.Orders() < 100 {
				t.Parallel()
			}
			r, err := steadily(4, func(pace scenario.Pace) (scenario.Result, error) {
				return scenario.Run(t.Context(), s, pace, func() {})
			})
			switch {
			case err != nil:
				t.Fatal(err)
			case r.Disturbed():
				t.Skipf("the machine stalled for %d ms, in the last of %d runs: %s %+v", r.StalledMS, r.Runs, r.Error, r.Checks)
			case !r.OK:
				t.Errorf("%s %+v", r.Error, r.Checks)
			}
		})
	}
}
