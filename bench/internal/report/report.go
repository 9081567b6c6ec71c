// Package report tells what was measured: as tables on a terminal, and as a page with
// plots.
package report

import (
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/cases"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/scale"
)

// A Report is one run.
type Report struct {
	Machine  Machine
	Peers    []Module
	Began    time.Time
	Plan     measure.Plan
	Quick    bool
	Cases    []CaseResult
	Charts   []scale.Chart
	Memory   []scale.Memory
	Breakers float64 // bytes of many breakers
	Many     int     // how many they are
}

// A CaseResult is a case with what was measured, implementation by implementation.
type CaseResult struct {
	cases.Case
	Found []measure.Measurement
}

// ours is what the others are compared with.
func (c CaseResult) ours() measure.Measurement { return c.Found[0] }

// find is the measurement of an implementation by name.
func (c CaseResult) find(name string) (measure.Measurement, bool) {
	for i, implementation := range c.Implementations {
		if implementation.Name == name {
			return c.Found[i], true
		}
	}
	return measure.Measurement{}, false
}

func (r Report) find(at ref) (measure.Measurement, bool) {
	for _, c := range r.Cases {
		if c.Key == at.key {
			return c.find(at.name)
		}
	}
	return measure.Measurement{}, false
}
