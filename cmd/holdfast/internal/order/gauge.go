package order

import "sync"

// A gauge counts what is going on at the same time, and remembers the most.
type gauge struct {
	mu        sync.Mutex // guards the fields below
	now, most int
}

// enter counts one more, until leave is called.
func (g *gauge) enter() (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.most = max(g.most, g.now)
	return g.leave
}

func (g *gauge) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

func (g *gauge) read() (now, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now, g.most
}
