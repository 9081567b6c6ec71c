// Package scale looks at what grows: goroutines, pipelines that share a breaker, and the
// memory of what is idle.
package scale

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/cases"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/breaker"
)

// A Curve is the time of one call in nanoseconds at each of a chart's sizes.
type Curve struct {
	Name  string
	Nanos []float64
}

// A Chart has a curve per implementation.
type Chart struct {
	Key    string
	Title  string
	About  string
	Axis   string // what the sizes count
	Sizes  []int
	Curves []Curve
}

var sizes = []int{1, 10, 100, 1000}

// Goroutines is the cost of a case's calls against the number of goroutines that make
// them, by two processors.
func Goroutines(c cases.Case, plan measure.Plan) Chart {
	ctx, cancel := c.Context()
	defer cancel()
	work := c.NewWork(ctx)
	chart := Chart{
		Key:   "goroutines-" + c.Key,
		Title: c.Title,
		Axis:  "goroutines",
		Sizes: sizes,
	}
	var points []measure.Point
	for _, implementation := range c.Implementations {
		if implementation.Kind != cases.Ours && implementation.Kind != cases.Peer {
			continue
		}
		setup := cases.NewSetup()
		defer setup.Close()
		loop := implementation.New(setup)
		chart.Curves = append(chart.Curves, Curve{Name: implementation.Name})
		for _, n := range sizes {
			points = append(points, measure.Point{
				Goroutines: n,
				Loop:       func(n int) { _, _ = loop(n, work) },
			})
		}
	}
	chart.fill(measure.RunPoints(points, plan))
	return chart
}

// Sharing is the cost of a call against the number of pipelines that have one breaker
// between them, beside as many with a breaker each.
func Sharing(plan measure.Plan) Chart {
	chart := Chart{
		Key:   "sharing",
		Title: "Pipelines that share one breaker",
		About: "Two goroutines call all the pipelines in turn.",
		Axis:  "pipelines",
		Sizes: sizes,
		Curves: []Curve{
			{Name: "one consecutive breaker"},
			{Name: "a consecutive breaker each"},
			{Name: "one time window"},
			{Name: "a time window each"},
		},
	}
	var points []measure.Point
	for _, trip := range [][]breaker.Option{nil, cases.TimeWindow()} {
		for _, shared := range []bool{true, false} {
			for _, n := range sizes {
				points = append(points, measure.Point{Goroutines: 2, Loop: inTurn(pipelines(n, shared, trip))})
			}
		}
	}
	chart.fill(measure.RunPoints(points, plan))
	return chart
}

func pipelines(n int, shared bool, trip []breaker.Option) []*holdfast.Pipeline {
	one := breaker.New("shared", trip...)
	made := make([]*holdfast.Pipeline, n)
	for i := range made {
		if shared {
			made[i] = holdfast.Compose(one)
		} else {
			made[i] = holdfast.Compose(breaker.New(fmt.Sprint(i), trip...))
		}
	}
	return made
}

func inTurn(pipelines []*holdfast.Pipeline) func(n int) {
	ctx, work := context.Background(), cases.Succeed()
	return func(n int) {
		next := 0
		for range n {
			_, _ = holdfast.Do(ctx, pipelines[next], work.Do)
			if next++; next == len(pipelines) {
				next = 0
			}
		}
	}
}

// fill takes the series of all curves, one after another.
func (c *Chart) fill(found []measure.Series) {
	for i, s := range found {
		curve := &c.Curves[i/len(c.Sizes)]
		curve.Nanos = append(curve.Nanos, s.Median())
	}
}
