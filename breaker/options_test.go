package breaker_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

func TestBadSettings(t *testing.T) {
	type options = []breaker.Option
	last, within := breaker.Last(10), breaker.Within(time.Minute)
	tests := []struct {
		name    string
		options options
		want    string // after `breaker "payments": `
	}{
		{"no failures", options{breaker.ConsecutiveFailures(0)}, "ConsecutiveFailures(0): must be at least 1"},
		{"negative", options{breaker.ConsecutiveFailures(-1)}, "ConsecutiveFailures(-1): must be at least 1"},
		{"rate 0", options{breaker.FailureRate(0, last)}, "FailureRate(0, Last(10)): rate must be greater than 0 and at most 1"},
		{"rate above 1", options{breaker.FailureRate(1.01, within)}, "FailureRate(1.01, Within(1m0s)): rate must be"},
		{"percent", options{breaker.FailureRate(50, last)}, "FailureRate(50, Last(10)): rate must be"},
		{"NaN", options{breaker.FailureRate(math.NaN(), last)}, "FailureRate(NaN, Last(10)): rate must be"},
		{"zero window", options{breaker.FailureRate(.5, breaker.Window{})}, "FailureRate(0.5, Window{}): must be Last or Within"},
		{"Last(0)", options{breaker.FailureRate(.5, breaker.Last(0))}, "FailureRate(0.5, Last(0)): calls must be 1 to 16777216"},
		{"Last(-1)", options{breaker.Failures(1, breaker.Last(-1))}, "Failures(1, Last(-1)): n must be at most the window's size"},
		{"Last without end", options{breaker.FailureRate(.5, breaker.Last(math.MaxInt))}, "calls must be 1 to 16777216"},
		{"Within too short", options{breaker.Failures(1, breaker.Within(9))}, "Failures(1, Within(9ns)): d must be at least 10ns"},
		{"Within negative", options{breaker.Failures(1, breaker.Within(-1))}, "d must be at least 10ns"},
		{"no failures in a window", options{breaker.Failures(0, within)}, "Failures(0, Within(1m0s)): n must be at least 1"},
		{"more failures than fit", options{breaker.Failures(11, last)}, "Failures(11, Last(10)): n must be at most the window's size"},
		{"slower than nothing", options{breaker.SlowCalls(0, .5, last)}, "SlowCalls(0s, 0.5, Last(10)): slowerThan must be greater than 0"},
		{"slow rate", options{breaker.SlowCalls(time.Second, 2, last)}, "SlowCalls(1s, 2, Last(10)): rate must be"},
		{"slow is failure", options{breaker.SlowIsFailure(-1)}, "SlowIsFailure(-1ns): must be greater than 0"},
		{"minimum 0", options{breaker.MinimumCalls(0)}, "MinimumCalls(0): must be at least 1"},
		{
			"minimum above the window",
			options{breaker.FailureRate(.5, last), breaker.MinimumCalls(11)},
			"MinimumCalls(11): must be at most the size of Last(10)",
		},
		{
			"minimum above SlowCalls' window",
			options{breaker.SlowCalls(time.Second, .5, last), breaker.MinimumCalls(11)},
			"MinimumCalls(11): must be at most the size of Last(10)",
		},
		{
			"minimum above Failures' window, the only one",
			options{breaker.Failures(1, last), breaker.MinimumCalls(11)},
			"MinimumCalls(11): must be at most the size of Last(10)",
		},
		{"open for 0", options{breaker.OpenFor(0)}, "OpenFor(0s): must be greater than 0"},
		{"open for less", options{breaker.OpenFor(-time.Second)}, "OpenFor(-1s): must be greater than 0"},
		{"backoff from 0", options{breaker.OpenBackoff(0, time.Second)}, "OpenBackoff(0s, 1s): must be 0 < base ≤ max"},
		{"backoff down", options{breaker.OpenBackoff(2, 1)}, "OpenBackoff(2ns, 1ns): must be 0 < base ≤ max"},
		{"nil func", options{breaker.OpenForFunc(nil)}, "OpenForFunc(nil): must not be nil"},
		{"no trials", options{breaker.Trials(0, 1)}, "Trials(0, 1): must both be at least 1"},
		{"no successes", options{breaker.Trials(1, 0)}, "Trials(1, 0): must both be at least 1"},
		{"tolerate", options{breaker.TolerateTrialFailures(-1)}, "TolerateTrialFailures(-1): must be at least 0"},
		{"trial timeout", options{breaker.TrialTimeout(0)}, "TrialTimeout(0s): must be greater than 0"},
		{"nil classifier", options{breaker.Classify(nil)}, "Classify(nil): must not be nil"},
		{"nil callback", options{breaker.OnStateChange(nil)}, "OnStateChange(nil): must not be nil"},
		{"nil clock", options{breaker.Clock(nil)}, "Clock(nil): must not be nil"},
		{"nil option", options{nil}, "Option(nil): must not be nil"},
		{
			"all of them at once",
			options{breaker.OpenFor(0), breaker.Trials(0, 0), breaker.Clock(nil)},
			"Clock(nil): must not be nil; OpenFor(0s): must be greater than 0; Trials(0, 0): must both be at least 1",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := breaker.Build("payments", tt.options...)
			if b != nil || err == nil || !strings.HasPrefix(err.Error(), `breaker "payments": `) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %s", err, tt.want)
			}
			defer func() {
				if got := recover(); got != err.Error() {
					t.Errorf("New panics with %v, want Build's message", got)
				}
			}()
			breaker.New("payments", tt.options...)
		})
	}
	if _, err := breaker.Build(""); err == nil {
		t.Error("an empty name is accepted")
	}
}

func TestLastOptionWins(t *testing.T) {
	c := newCircuit(
		breaker.ConsecutiveFailures(0), breaker.ConsecutiveFailures(1),
		breaker.OpenForFunc(func(int) time.Duration { return time.Hour }), breaker.OpenFor(time.Second),
	)
	c.play(t, "F =open +1s =half-open")
}

func TestDescribe(t *testing.T) {
	d := breaker.New("payments", breaker.FailureRate(.5, breaker.Within(time.Minute)), breaker.OpenFor(5*time.Second)).Describe()
	if d.Kind != "breaker" || d.Name != "payments" {
		t.Errorf("described as %s %q", d.Kind, d.Name)
	}
	for key, want := range map[string]string{
		"failure_rate":             "[rate=0.5 over=Within(1m0s) minimum_calls=10]",
		"open_for":                 "OpenFor(5s)",
		"trial_timeout":            "5s",
		"concurrent_trials":        "1",
		"trial_successes":          "1",
		"tolerated_trial_failures": "0",
	} {
		if got := d.Param(key).String(); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if got := fmt.Sprint(breaker.New("payments").Describe().Param("consecutive_failures")); got != "5" {
		t.Errorf("the default is %s failures in a row, want 5", got)
	}
}
