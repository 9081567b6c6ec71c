package report

import (
	"fmt"
	"math"
)

// nanos shows a time in nanoseconds to three digits.
func nanos(ns float64) string {
	switch {
	case math.IsNaN(ns):
		return "–"
	case ns < 10:
		return fmt.Sprintf("%.1f", ns)
	default:
		return fmt.Sprintf("%.0f", ns)
	}
}

// ratio shows how many times as much.
func ratio(r float64) string {
	switch {
	case math.IsNaN(r):
		return "–"
	case r < 0.3: // where goals of a fifth and a tenth are decided
		return fmt.Sprintf("%.3f", r)
	case r < 10:
		return fmt.Sprintf("%.2f", r)
	default:
		return fmt.Sprintf("%.0f", r)
	}
}

// size shows a size in bytes.
func size(b float64) string {
	switch {
	case b < 10_000:
		return fmt.Sprintf("%.0f", b)
	default:
		return fmt.Sprintf("%.1f k", b/1000)
	}
}

func percent(share float64) string { return fmt.Sprintf("± %.0f %%", 100*share) }
