package policy_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

// a diary has observers write "who: kind" into one list.
type diary struct{ lines []string }

func (d *diary) observer(who string, then func()) policy.Observer {
	return policy.ObserverFunc(func(_ context.Context, e policy.Event) {
		d.lines = append(d.lines, who+": "+string(e.Kind))
		if then != nil {
			then()
		}
	})
}

func TestEmitTellsInOrderOfSubscription(t *testing.T) {
	var events policy.Events
	var d diary
	cancelA := events.Subscribe(d.observer("a", nil))
	cancelB := events.Subscribe(d.observer("b", nil))
	same := d.observer("c", nil)
	cancelC := events.Subscribe(same)
	events.Subscribe(same) // twice the same is two subscriptions

	events.Emit(t.Context(), policy.Event{Kind: "1"})
	cancelB()
	cancelB()
	cancelC()
	events.Emit(t.Context(), policy.Event{Kind: "2"})
	cancelA()
	want := []string{"a: 1", "b: 1", "c: 1", "c: 1", "a: 2", "c: 2"}
	if !slices.Equal(d.lines, want) {
		t.Errorf("told %q, want %q", d.lines, want)
	}
}

func TestObserved(t *testing.T) {
	var events policy.Events
	if events.Observed() {
		t.Error("observed by nobody")
	}
	one := events.Subscribe(&policytest.Recorder{})
	two := events.Subscribe(&policytest.Recorder{})
	if one(); !events.Observed() {
		t.Error("not observed, though one is left")
	}
	if two(); events.Observed() {
		t.Error("observed after the last cancel")
	}
}

func TestEmitSetsTheTime(t *testing.T) {
	var events policy.Events
	rec := policytest.Record(&events)
	events.Emit(t.Context(), policy.Event{Kind: "now"})
	events.Emit(t.Context(), policy.Event{Kind: "then", Time: start})
	got := rec.Events()
	if time.Since(got[0].Time).Abs() > time.Minute || !got[1].Time.Equal(start) {
		t.Errorf("times %v and %v, want the system's and the event's own", got[0].Time, got[1].Time)
	}
}

func TestObserversSeeTheContext(t *testing.T) {
	var events policy.Events
	events.Subscribe(policy.ObserverFunc(func(ctx context.Context, _ policy.Event) {
		if ctx.Value(key{}) != "value" {
			t.Error("the ctx is not the call's")
		}
	}))
	events.Emit(context.WithValue(t.Context(), key{}, "value"), policy.Event{})
}

// A panic of one hides nothing from the others, and goes on; so does Goexit.
func TestObserverThatEndsBadly(t *testing.T) {
	tests := []struct {
		name      string
		end       []func() // of the observers 1 and 3 of four
		recovered any
	}{
		{"panic", []func(){func() { panic(errCall) }, nil}, errCall},
		{"two panics", []func(){func() { panic(errCall) }, func() { panic(errGone) }}, errGone},
		{"Goexit", []func(){runtime.Goexit, nil}, nil},
		{"panic and Goexit", []func(){func() { panic(errCall) }, runtime.Goexit}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var events policy.Events
			var d diary
			for i, end := range []func(){nil, tt.end[0], nil, tt.end[1]} {
				events.Subscribe(d.observer(fmt.Sprint(i), end))
			}
			events.Subscribe(d.observer("last", nil))
			var recovered any
			returned := false
			var emitter sync.WaitGroup
			emitter.Go(func() {
				defer func() { recovered = recover() }()
				events.Emit(t.Context(), policy.Event{Kind: "e"})
				returned = true
			})
			emitter.Wait()
			if want := []string{"0: e", "1: e", "2: e", "3: e", "last: e"}; !slices.Equal(d.lines, want) {
				t.Errorf("told %q, want %q", d.lines, want)
			}
			if returned || recovered != tt.recovered {
				t.Errorf("returned %t, recovered %v, want %v", returned, recovered, tt.recovered)
			}
			d.lines = nil
			var again sync.WaitGroup
			again.Go(func() {
				defer func() { _ = recover() }()
				events.Emit(t.Context(), policy.Event{Kind: "f"})
			})
			again.Wait()
			if len(d.lines) != 5 {
				t.Errorf("the next event was told to %q", d.lines)
			}
		})
	}
}

// No lock is held, so an observer may subscribe, cancel, and emit. Changes take
// effect with the next event.
func TestObserverCallsBack(t *testing.T) {
	var events policy.Events
	var d diary
	var cancel func()
	cancel = events.Subscribe(d.observer("a", func() {
		cancel()
		events.Subscribe(d.observer("b", nil))
		events.Emit(t.Context(), policy.Event{Kind: "within"})
	}))
	events.Emit(t.Context(), policy.Event{Kind: "first"})
	events.Emit(t.Context(), policy.Event{Kind: "second"})
	if want := []string{"a: first", "b: within", "b: second"}; !slices.Equal(d.lines, want) {
		t.Errorf("told %q, want %q", d.lines, want)
	}
}

func TestSubscribeNil(t *testing.T) {
	defer func() {
		if got := recover(); got != "policy: Subscribe(nil): must not be nil" {
			t.Errorf("panic %v", got)
		}
	}()
	var events policy.Events
	events.Subscribe(nil)
}

// Whoever is subscribed during all of it is told every event, once.
func TestEventsFromManyGoroutines(t *testing.T) {
	const emitters, each = 20, 200
	var events policy.Events
	var steady, passing atomic.Int64
	count := func(n *atomic.Int64) policy.Observer {
		return policy.ObserverFunc(func(context.Context, policy.Event) { n.Add(1) })
	}
	cancel := events.Subscribe(count(&steady))
	var all sync.WaitGroup
	for range emitters {
		all.Go(func() {
			for range each {
				events.Emit(t.Context(), policy.Event{Kind: "e"})
			}
		})
		all.Go(func() {
			for range each {
				end := events.Subscribe(count(&passing))
				go end()
				end()
			}
		})
	}
	all.Wait()
	cancel()
	if n := steady.Load(); n != emitters*each {
		t.Errorf("told %d events, want %d", n, emitters*each)
	}
	for events.Observed() { // until the last of the extra ends has run
		runtime.Gosched()
	}
}

func TestUnobservedCostsNothing(t *testing.T) {
	var events policy.Events
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		if events.Observed() {
			t.Error("observed by nobody")
		}
		events.Emit(ctx, policy.Event{Kind: policy.CallDone})
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
	events.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) {}))
	if n := testing.AllocsPerRun(1000, func() { events.Emit(ctx, policy.Event{Kind: policy.CallDone}) }); n != 0 {
		t.Errorf("%v allocations to tell one observer, want none", n)
	}
}

func BenchmarkUnobserved(b *testing.B) {
	var events policy.Events
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if events.Observed() {
			events.Emit(ctx, policy.Event{Kind: policy.CallDone})
		}
	}
}

func TestDescriptionParam(t *testing.T) {
	d := policy.Description{Params: []slog.Attr{slog.Int("limit", 20), slog.Duration("wait", time.Second)}}
	if d.Param("limit").Int64() != 20 || d.Param("wait").Duration() != time.Second {
		t.Errorf("params %v and %v, want 20 and 1s", d.Param("limit"), d.Param("wait"))
	}
	if v := d.Param("burst"); !v.Equal(slog.Value{}) {
		t.Errorf("param %v, want the zero value for one that is not there", v)
	}
}
