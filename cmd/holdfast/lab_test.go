package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/scenario"
)

// The lab itself, at the speed of make demo. A machine that is too busy for it proves
// nothing either way.
func TestLab(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	for _, s := range scenario.All() {
		t.Run(s.Name, func(t *testing.T) {
			run := func(pace scenario.Pace) (scenario.Result, error) {
				return scenario.Run(t.Context(), s, pace, func() {})
			}
			var r scenario.Result
			var err error
			if s.Orders() < 100 { // few enough to run beside others
				t.Parallel()
				r, err = steadily(4, run)
			} else {
				r, err = run(4)
			}
			switch {
			case err != nil:
				t.Fatal(err)
			case r.Disturbed():
				t.Skipf("the machine stalled for %d ms: %s %+v", r.StalledMS, r.Error, r.Checks)
			case !r.OK:
				t.Errorf("%s %+v", r.Error, r.Checks)
			}
		})
	}
}
