package scenario

import (
	"fmt"
	"time"
)

// Pace divides the durations of a scenario: at 5, five seconds take one.
type Pace float64

// Of is how long an unscaled duration really takes.
func (p Pace) Of(unscaled time.Duration) time.Duration {
	return time.Duration(float64(unscaled) / float64(p))
}

// Unscaled is what a duration that was measured stands for.
func (p Pace) Unscaled(measured time.Duration) time.Duration {
	return time.Duration(float64(measured) * float64(p))
}

// show writes a duration for people, in two or three digits.
func show(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// showReal writes a duration that is not unscaled.
func showReal(d time.Duration) string { return show(d) + " (real)" }
