package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/timeout"
)

func TestEvents(t *testing.T) {
	type told struct {
		kind    policy.Kind
		outcome policy.Outcome
		took    time.Duration
	}
	tests := []struct {
		name string
		opts []timeout.Option
		call policy.Call
		want []told
	}{
		{"in time", nil, after(10*ms, 1, nil), nil},
		{"failed in time", nil, after(10*ms, nil, errCall), nil},
		{"exceeded", nil, waiting, []told{{policy.TimeoutExceeded, policy.Failure, 50 * ms}}},
		{"BEHAVIOUR 48: late success", nil, after(400*ms, 1, nil), []told{{policy.TimeoutExceeded, policy.Success, 400 * ms}}},
		{"late panic", nil, panicking(60*ms, errCall), []told{{policy.TimeoutExceeded, policy.Failure, 60 * ms}}},
		{
			"abandoned",
			[]timeout.Option{timeout.Abandon()},
			after(400*ms, 1, nil),
			[]told{{policy.TimeoutExceeded, policy.Failure, 50 * ms}, {policy.TimeoutAbandoned, policy.Failure, 50 * ms}},
		},
		{
			"BEHAVIOUR 53: abandoned, panics",
			[]timeout.Option{timeout.Abandon()},
			panicking(60*ms, errCall),
			[]told{
				{policy.TimeoutExceeded, policy.Failure, 50 * ms},
				{policy.TimeoutAbandoned, policy.Failure, 50 * ms},
				{policy.CallPanicked, policy.Failure, 60 * ms},
			},
		},
	}
	for _, tt := range tests {
		bubbled(t, tt.name, func(t *testing.T) {
			p := timeout.New(50*ms, append(tt.opts, timeout.Name("db"))...)
			recorder := policytest.Record(p)
			func() {
				defer func() { recover() }()
				p.Wrap(policy.Invoke)(t.Context(), tt.call)
			}()
			time.Sleep(time.Second)
			var got []told
			for _, e := range recorder.Events() {
				got = append(got, told{e.Kind, e.Outcome, e.Duration})
				if e.Policy != "timeout" || e.Name != "db" || e.Time.IsZero() || (e.Err == nil) != (e.Outcome == policy.Success) {
					t.Errorf("event %+v lacks a field", e)
				}
				if e.Kind == policy.CallPanicked && (!errors.Is(e.Err, errCall) || !strings.Contains(e.Reason, ".panicking.func")) {
					t.Errorf("event %+v, want the panic and its stack", e)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("told %v, want %v", got, tt.want)
			}
		})
	}
}

func panicking(d time.Duration, value any) policy.CallFunc {
	return func(context.Context) (any, error) {
		time.Sleep(d)
		panic(value)
	}
}

// An observer's panic reaches the caller once all is settled.
func TestObserverPanics(t *testing.T) {
	for name, opts := range map[string][]timeout.Option{"bound": nil, "abandoned": {timeout.Abandon()}} {
		bubbled(t, name, func(t *testing.T) {
			p := timeout.New(50*ms, opts...)
			p.Subscribe(policy.ObserverFunc(func(context.Context, policy.Event) { panic("observer") }))
			recorder := policytest.Record(p)
			var call context.Context
			func() {
				defer func() {
					if got := recover(); got != "observer" {
						t.Errorf("recovered %v, want the observer's", got)
					}
				}()
				p.Wrap(policy.Invoke)(t.Context(), policy.CallFunc(func(ctx context.Context) (any, error) {
					call = ctx
					<-ctx.Done()
					time.Sleep(ms)
					return nil, ctx.Err()
				}))
			}()
			synctest.Wait()
			if call.Err() == nil || len(recorder.Kinds()) != 1+len(opts) {
				t.Errorf("ctx %v, told %v", call.Err(), recorder.Kinds())
			}
			time.Sleep(ms)
		})
	}
}
