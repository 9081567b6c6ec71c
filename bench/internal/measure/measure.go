// Package measure times functions against one another on a machine that is never quite
// still: in short batches, in turn, over many rounds.
package measure

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Subject is something to be timed.
type Subject struct {
	Name string
	Loop func(n int) // does it n times; safe for concurrent use
}

// A Plan says how long to look. The zero Plan is not usable.
type Plan struct {
	Rounds int
	Batch  time.Duration // of one subject in one mode, in one round
}

// A Mode is a way to run a subject.
type Mode uint8

// The modes. The parallel ones share the work out among as many goroutines as there are
// processors, as testing's RunParallel does; their time is wall time per operation.
const (
	Serial Mode = iota // one goroutine, on a machine with all its processors
	One                // parallel, at one processor
	Two                // parallel, at two processors
)

// Modes are all of them.
var Modes = []Mode{Serial, One, Two}

// String is what the tables call m.
func (m Mode) String() string {
	return [...]string{"serial", "1 processor", "2 processors"}[m]
}

// processors is what runtime.GOMAXPROCS is set to.
func (m Mode) processors() int {
	switch m {
	case One:
		return 1
	case Two:
		return 2
	default:
		return runtime.NumCPU()
	}
}

// A Measurement is what was found out about a subject.
type Measurement struct {
	Time   [3]Series // by Mode
	Bytes  float64   // allocated per operation
	Allocs float64
}

// A Series is the time of one operation in nanoseconds, round by round.
type Series []float64

// Median is the middle of the rounds, in nanoseconds.
func (s Series) Median() float64 { return s.quantile(0.5) }

// Spread is half of what lies between the quartiles, as a share of the median: half of
// the rounds are about that close to it.
func (s Series) Spread() float64 {
	return (s.quantile(0.75) - s.quantile(0.25)) / 2 / s.Median()
}

// Over is the median of the rounds' ratios to other's: what disturbs a round disturbs
// both.
func (s Series) Over(other Series) float64 {
	ratios := make(Series, min(len(s), len(other)))
	for i := range ratios {
		ratios[i] = s[i] / other[i]
	}
	return ratios.Median()
}

func (s Series) quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// Run measures the subjects, interleaved: in every round each has its turn in every
// mode, in an order that changes.
func Run(subjects []Subject, plan Plan) []Measurement {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	found := make([]Measurement, len(subjects))
	batches := make([][3]int, len(subjects))
	for i, s := range subjects {
		found[i].Bytes, found[i].Allocs = Allocated(s.Loop)
		for _, mode := range Modes {
			runtime.GOMAXPROCS(mode.processors())
			batches[i][mode] = calibrate(s.Loop, mode, plan.Batch)
		}
	}
	for range plan.Rounds {
		order := rand.Perm(len(subjects))
		for _, mode := range Modes {
			runtime.GOMAXPROCS(mode.processors())
			for _, i := range order {
				runtime.GC() // nobody pays for another's garbage
				ns := once(subjects[i].Loop, mode, batches[i][mode])
				found[i].Time[mode] = append(found[i].Time[mode], ns)
			}
		}
	}
	return found
}

// A Point is a subject done by a number of goroutines.
type Point struct {
	Loop       func(n int)
	Goroutines int
}

// RunPoints measures the points at two processors, interleaved.
func RunPoints(points []Point, plan Plan) []Series {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(Two.processors()))
	found := make([]Series, len(points))
	batches := make([]int, len(points))
	for i, p := range points {
		batches[i] = calibrate(p.Loop, Two, plan.Batch)
	}
	for range plan.Rounds {
		for _, i := range rand.Perm(len(points)) {
			runtime.GC()
			found[i] = append(found[i], Parallel(points[i].Loop, points[i].Goroutines, batches[i]))
		}
	}
	return found
}

// calibrate finds how many operations take about as long as a batch. Of three looks the
// quickest counts: a look that was disturbed would make for batches of next to nothing.
func calibrate(loop func(int), mode Mode, batch time.Duration) int {
	n := 1
	for {
		took := float64(n) * min(once(loop, mode, n), once(loop, mode, n), once(loop, mode, n))
		if took >= float64(batch)/4 || n >= 1<<30 {
			return max(1, int(float64(n)*float64(batch)/took))
		}
		n *= 2
	}
}

// once is the time of one of n operations, in nanoseconds.
func once(loop func(int), mode Mode, n int) float64 {
	if mode == Serial {
		start := time.Now()
		loop(n)
		return float64(time.Since(start)) / float64(n)
	}
	return Parallel(loop, mode.processors(), n)
}

// Parallel has goroutines share n operations out among themselves, and returns the wall
// time of one in nanoseconds. Making the goroutines does not count.
func Parallel(loop func(int), goroutines, n int) float64 {
	chunk := max(1, n/goroutines/64) // small, so that they end together
	var taken atomic.Int64
	var group sync.WaitGroup
	begin := make(chan struct{})
	for range goroutines {
		group.Go(func() {
			<-begin
			for {
				from := int(taken.Add(int64(chunk))) - chunk
				if from >= n {
					return
				}
				loop(min(chunk, n-from))
			}
		})
	}
	start := time.Now()
	close(begin)
	group.Wait()
	return float64(time.Since(start)) / float64(n)
}
