package holdfasthttp

import (
	"container/list"
	"fmt"
	"net/http"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/policy"
)

// A lane is a pipeline, and what has to be known about it.
type lane struct {
	pipeline  *holdfast.Pipeline
	selective bool // every retry in it has a classifier, which may name what we would not repeat
	elsewhere bool // the call may run on another goroutine, and longer than its caller waits
	circuits  []circuit

	key   string
	ready func() *lane // makes the fields above; nil where they are there

	place    *list.Element // and the following: guarded by the lock of lanes
	inFlight int
	uses     uint64
}

type circuit interface{ State() breaker.State }

func newLane(p *holdfast.Pipeline) *lane {
	l := &lane{pipeline: p}
	l.inspect()
	return l
}

func (l *lane) inspect() {
	retries, selective := 0, 0
	for _, p := range l.pipeline.Policies() {
		if c, ok := p.(circuit); ok {
			l.circuits = append(l.circuits, c)
		}
		var d policy.Description
		if describer, ok := p.(policy.Describer); ok {
			d = describer.Describe()
		}
		switch d.Kind {
		case "retry":
			retries++
			if d.Param("classifier").String() == "true" {
				selective++
			}
		case "timeout":
			l.elsewhere = l.elsewhere || d.Param("abandon").String() != "false"
		case "bulkhead", "ratelimit", "breaker", "fallback":
		default: // not ours: who knows
			l.elsewhere = true
		}
	}
	l.selective = retries > 0 && selective == retries
}

// droppable asks the circuits, which may tell their observers of a transition.
func (l *lane) droppable() bool {
	for _, c := range l.circuits {
		if c.State() != breaker.Closed {
			return false
		}
	}
	return true
}

// lanes choose the lane of a request.
type lanes struct {
	common *lane
	key    func(*http.Request) string // nil: common serves all
	make   func(key string) *holdfast.Pipeline
	max    int

	mu    sync.Mutex // guards the fields below
	byKey map[string]*lane
	order list.List // of *lane, the least recently used first
}

func newLanes(common *holdfast.Pipeline, s *settings) *lanes {
	return &lanes{common: newLane(common), key: s.key, make: s.make, max: s.max, byKey: map[string]*lane{}}
}

// enter returns the lane of a request, which is not dropped before leave is called,
// once; nil is nothing to call.
func (l *lanes) enter(req *http.Request) (_ *lane, leave func()) {
	if l.key == nil {
		return l.common, nil
	}
	key := l.key(req)
	if key == "" {
		return l.common, nil
	}
	found := l.use(key)
	leave = func() { l.leave(found) }
	made := false
	defer func() {
		if !made {
			l.forget(found)
		}
	}()
	found.ready()
	made = true
	l.trim()
	return found, leave
}

// hold keeps a lane for an attempt, which may outlast its call.
func (l *lanes) hold(used *lane) (release func()) {
	if used == l.common {
		return func() {}
	}
	l.mu.Lock()
	used.inFlight++
	l.mu.Unlock()
	return func() { l.leave(used) }
}

func (l *lanes) use(key string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.byKey[key]
	if !ok {
		found = &lane{key: key}
		found.ready = sync.OnceValue(func() *lane { return l.build(found) })
		found.place = l.order.PushBack(found)
		l.byKey[key] = found
	}
	found.inFlight++
	found.uses++
	l.order.MoveToBack(found.place)
	return found
}

// build is run once for a lane, by the first of those who want it.
func (l *lanes) build(made *lane) *lane {
	made.pipeline = l.make(made.key)
	if made.pipeline == nil {
		panic(fmt.Sprintf("holdfasthttp: Keyed: make(%q) returned nil: must make a pipeline", made.key))
	}
	made.inspect()
	return made
}

// forget takes away a lane that could not be built, so that the next call tries again.
func (l *lanes) forget(failed *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(failed)
}

func (l *lanes) removeLocked(gone *lane) {
	if l.byKey[gone.key] == gone {
		delete(l.byKey, gone.key)
		l.order.Remove(gone.place)
	}
}

func (l *lanes) leave(used *lane) {
	l.mu.Lock()
	used.inFlight--
	l.mu.Unlock()
	l.trim()
}

// trim drops lanes that are too many, as far as they can go.
func (l *lanes) trim() {
	c, uses := l.candidate()
	for c != nil {
		c, uses = l.settle(c, uses, c.droppable()) // asked without the lock
	}
}

// candidate is the least recently used idle lane, if there are too many.
func (l *lanes) candidate() (*lane, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.idleLocked(l.order.Front())
}

// settle drops a candidate if that is wanted and nobody has used it meanwhile, and
// returns the next.
func (l *lanes) settle(c *lane, uses uint64, drop bool) (*lane, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := c.place.Next()
	if drop && c.uses == uses {
		l.removeLocked(c)
	}
	return l.idleLocked(next)
}

func (l *lanes) idleLocked(from *list.Element) (*lane, uint64) {
	if len(l.byKey) <= l.max {
		return nil, 0
	}
	for e := from; e != nil; e = e.Next() {
		if c := e.Value.(*lane); c.inFlight == 0 {
			return c, c.uses
		}
	}
	return nil, 0
}
