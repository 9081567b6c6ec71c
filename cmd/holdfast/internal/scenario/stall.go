package scenario

import "time"

// stall is how late a sleeper must be woken for the machine to count as disturbed: an
// order that is due in a few milliseconds is then late enough to change what is seen.
const stall = 10 * time.Millisecond

// A stallWatch measures how late the machine wakes a sleeper: a machine that is busy
// with other things, or a virtual one that is not run, cannot keep a schedule.
type stallWatch struct {
	quit chan struct{}
	late chan time.Duration
}

func watchStalls() stallWatch {
	w := stallWatch{quit: make(chan struct{}), late: make(chan time.Duration)}
	go func() {
		w.late <- latest(w.quit)
	}()
	return w
}

// stop ends the watch and returns by how much the latest sleeper was late.
func (w stallWatch) stop() time.Duration {
	close(w.quit)
	return <-w.late
}

func latest(quit <-chan struct{}) time.Duration {
	const nap = 2 * time.Millisecond
	worst := time.Duration(0)
	for {
		start := time.Now()
		select {
		case <-quit:
			return worst
		case <-time.After(nap):
			worst = max(worst, time.Since(start)-nap)
		}
	}
}
