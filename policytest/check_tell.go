package policytest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// A policy that describes itself says what kind it is, also while calls run.
func checkDescription(t *testing.T, fresh func() policy.Policy) {
	p := fresh()
	d, ok := p.(policy.Describer)
	if !ok {
		return
	}
	if d.Describe().Kind == "" {
		t.Error("the description has no Kind")
	}
	p.Wrap(policy.Invoke)(t.Context(), policy.CallFunc(func(context.Context) (any, error) {
		return d.Describe(), nil // hangs if a lock is held
	}))
}

// An observer that panics, or calls back, harms neither the policy nor the others,
// and one that has cancelled is told nothing more.
func checkObservers(t *testing.T, fresh func() policy.Policy) {
	p := fresh()
	observable, ok := p.(policy.Observable)
	if !ok {
		return
	}
	before, after := &Recorder{}, &Recorder{}
	cancels := []func(){
		observable.Subscribe(before),
		observable.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) {
			observable.Subscribe(&Recorder{})()
			panic("policytest: an observer panics")
		})),
		observable.Subscribe(after),
	}
	handler := p.Wrap(policy.Invoke)
	provoke(t, handler)
	if a, b := counts(before), counts(after); a != b {
		t.Errorf("an observer that panics hides events from the next: one was told %s, the other %s", a, b)
	}
	for _, e := range before.Events() {
		if e.Kind == "" || e.Time.IsZero() {
			t.Errorf("event %+v lacks its Kind or Time", e)
		}
	}
	for _, cancel := range slices.Repeat(cancels, 2) {
		cancel()
	}
	told := counts(before) + counts(after)
	provoke(t, handler)
	if now := counts(before) + counts(after); now != told {
		t.Fatal("observers are told events after they have cancelled")
	}
	admits(t, handler, "observers that panic")
}

// provoke runs calls of every kind through handler, for their events.
func provoke(t *testing.T, handler policy.Handler) {
	t.Helper()
	steps := []Step{Return(nil), Return(nil).After(time.Hour), Block(), Fail(refusal{errRefuse})}
	steps = append(steps, slices.Repeat([]Step{Fail(errCall)}, 10)...)
	for _, step := range steps {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		recovered(func() { handler(ctx, Script(step)) })
		cancel()
	}
	call := Script(Panic(errCall))
	if got := recovered(func() { handler(t.Context(), call) }); call.Calls() > 0 && got != any(errCall) {
		t.Errorf("recovered %v where the call and an observer panic, want the call's own", got)
	}
	var calls sync.WaitGroup
	for range crowd {
		calls.Go(func() {
			recovered(func() { handler(t.Context(), Script(Return(nil).After(time.Second))) })
		})
	}
	calls.Wait()
	time.Sleep(24 * time.Hour) // for calls that were left running
}

// counts is how often r was told each kind.
func counts(r *Recorder) string {
	n := map[policy.Kind]int{}
	for _, kind := range r.Kinds() {
		n[kind]++
	}
	return fmt.Sprint(n)
}

// recovered is what f panics with.
func recovered(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}
