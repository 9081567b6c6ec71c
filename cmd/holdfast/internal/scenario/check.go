package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Check compares what was measured with what a scenario must show. One without an
// expectation is a fact beside them, and always OK.
type Check struct {
	Name      string `json:"name"`
	Measured  string `json:"measured"`
	Expected  string `json:"expected,omitempty"`
	Documents string `json:"documents,omitempty"` // what the texts that the lab follows report: see theirs
	OK        bool   `json:"ok"`
}

// In returns the check with the part's name before its own.
func (c Check) In(part string) Check {
	c.Name = part + ": " + c.Name
	return c
}

// theirs marks words of what others report, which differ from those of the lab for the
// same thing.
func theirs(words string) string { return fmt.Sprintf("%q (their word)", words) }

func fact(name, measured, documents string) Check {
	return Check{Name: name, Measured: measured, Documents: documents, OK: true}
}

func equal(name string, got, want int, documents string) Check {
	return Check{name, strconv.Itoa(got), strconv.Itoa(want), documents, got == want}
}

func between(name string, got, least, most int, documents string) Check {
	return Check{name, strconv.Itoa(got), fmt.Sprintf("%d–%d", least, most), documents, least <= got && got <= most}
}

func atMost(name string, got, most int, documents string) Check {
	return Check{name, strconv.Itoa(got), fmt.Sprintf("≤ %d", most), documents, got <= most}
}

func atLeast(name string, got, least int, documents string) Check {
	return Check{name, strconv.Itoa(got), fmt.Sprintf("≥ %d", least), documents, got >= least}
}

func is(name, got, want, documents string) Check {
	return Check{name, got, want, documents, got == want}
}

// waited checks that every order took between least and most, unscaled.
func waited(m Measured, least, most time.Duration, documents string) Check {
	fastest, slowest := m.Fastest(), m.Slowest()
	return Check{
		Name:      "each order waited",
		Measured:  fmt.Sprintf("%s – %s", show(fastest), show(slowest)),
		Expected:  fmt.Sprintf("%s – %s", show(least), show(most)),
		Documents: documents,
		OK:        len(m.Orders) > 0 && least <= fastest && slowest <= most,
	}
}

// refused checks that want orders never reached Payment, and were answered at once:
// that limit is real time, whatever the pace.
func refused(m Measured, want int, documents string) Check {
	all := m.Refused()
	return Check{
		Name:      "refused, answered at once",
		Measured:  fmt.Sprintf("%d of %d, slowest in %s", quick(all), len(all), showReal(slowest(all))),
		Expected:  fmt.Sprintf("%d in < %s", want, show(atOnce)),
		Documents: documents,
		OK:        len(all) == want && quick(all) == want,
	}
}

// answers is the fact of what customers were told.
func answers(m Measured, documents string) Check {
	counts := m.Statuses()
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
	}
	return fact("customers were told", strings.Join(parts, ", "), documents)
}
