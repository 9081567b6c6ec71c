package payment

import "math/rand/v2"

// flakiness decides which requests fail. It is the same sequence of luck each time, so
// that what is seen can be seen again.
type flakiness struct {
	failRate float64 // the share of requests that fail
	lost     float64 // the share of those for which the work was done all the same
	luck     *rand.Rand
}

func newFlakiness(failRate, lost float64) flakiness {
	return flakiness{failRate: failRate, lost: lost, luck: rand.New(rand.NewPCG(3, 7))}
}

// fate is how the next request fails, nil if it does not.
func (f *flakiness) fate() error {
	switch luck := f.luck.Float64(); {
	case luck < f.failRate*f.lost:
		return errLost
	case luck < f.failRate:
		return errDown
	default:
		return nil
	}
}
