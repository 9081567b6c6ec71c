package policy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// What package slog makes of events and descriptions, and package json of outcomes.
func TestLogged(t *testing.T) {
	tests := []struct {
		name  string
		value any
		want  string
	}{
		{
			"an event with all fields",
			policy.Event{
				Kind: policy.AttemptDone, Pipeline: "checkout", Policy: "retry", Name: "payments", Attempt: 2,
				Outcome: policy.Failure, From: "closed", To: "open", Reason: "because", Err: errors.New("down"),
				Duration: time.Second, Delay: time.Minute,
			},
			`{"v":{"kind":"attempt.done","pipeline":"checkout","policy":"retry","name":"payments","attempt":2,"outcome":"failure",` +
				`"from":"closed","to":"open","reason":"because","err":"down","duration":1000000000,"delay":60000000000}}`,
		},
		{"an event with none", policy.Event{Kind: policy.CallDone}, `{"v":{"kind":"call.done"}}`},
		{
			"a pipeline",
			policy.Description{Kind: "pipeline", Name: "checkout", Layers: []policy.Description{
				{Kind: "retry", Params: []slog.Attr{slog.Int("attempts", 3)}},
				{Kind: "breaker", Name: "payments", Params: []slog.Attr{slog.Group("failure_rate", "rate", .5)}},
			}},
			`{"v":{"kind":"pipeline","name":"checkout","layers":{"1":{"kind":"retry","attempts":3},` +
				`"2":{"kind":"breaker","name":"payments","failure_rate":{"rate":0.5}}}}}`,
		},
		{"an outcome", policy.Ignored, `{"v":"ignored"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			only := &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
				if len(groups) == 0 && a.Key != "v" {
					return slog.Attr{}
				}
				return a
			}}
			slog.New(slog.NewJSONHandler(&out, only)).Info("", "v", tt.value)
			if got := string(bytes.TrimSpace(out.Bytes())); got != tt.want {
				t.Errorf("logged %s\nwant %s", got, tt.want)
			}
		})
	}
	if got, err := json.Marshal(policy.Failure); string(got) != `"failure"` || err != nil {
		t.Errorf("json %s, %v", got, err)
	}
}
