package policytest

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/policy"
)

// A Recorder is a [policy.Observer] that keeps what it is told. It is safe for
// concurrent use; the zero value is ready to use.
type Recorder struct {
	mu     sync.Mutex // guards events
	events []policy.Event
}

// Record keeps the events of o, policies or pipelines, from now on.
func Record(o ...policy.Observable) *Recorder {
	r := &Recorder{}
	for _, observable := range o {
		observable.Subscribe(r)
	}
	return r
}

// Observe implements [policy.Observer].
func (r *Recorder) Observe(_ context.Context, e policy.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events is a copy of the events so far, in the order in which they were told.
func (r *Recorder) Events() []policy.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Kinds is the kinds of [Recorder.Events].
func (r *Recorder) Kinds() []policy.Kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds := make([]policy.Kind, len(r.events))
	for i, e := range r.events {
		kinds[i] = e.Kind
	}
	return kinds
}
