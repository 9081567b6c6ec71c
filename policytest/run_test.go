package policytest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

func TestRunPassesSoundPolicies(t *testing.T) {
	tests := []struct {
		name string
		make func() policy.Policy
	}{
		{"least", func() policy.Policy { return policy.Func(least) }},
		{"retry", retrier{}.policy},
		{"semaphore", semaphore(take, func(_ context.Context, free, next func()) { defer free(); next() })},
		{"queue", semaphore(queue, func(_ context.Context, free, next func()) { defer free(); next() })},
		{"teller", func() policy.Policy { return &teller{} }},
		{"fallback", func() policy.Policy { return fallback.Value("x") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { policytest.Run(t, tt.make) })
	}
}

// A failure of Run is one of its *testing.T, so it is looked at from outside: the
// test binary runs TestBroken once more, and this reads what it says.
func TestRunFailsBrokenPolicies(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBroken$", "-test.v")
	child.Env = append(os.Environ(), "POLICYTEST_BROKEN=run")
	output, err := child.CombinedOutput()
	if err == nil {
		t.Error("broken policies pass")
	}
	failed := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^ +--- FAIL: TestBroken/([^/\s]+)/(\S+) `).FindAllStringSubmatch(string(output), -1) {
		failed[m[1]] = append(failed[m[1]], m[2])
	}
	for _, b := range broken {
		got := failed[underscored(b.name)]
		for _, check := range b.checks {
			name, chance := strings.CutSuffix(underscored(check), "?")
			if at := slices.Index(got, name); at >= 0 {
				got = slices.Delete(got, at, at+1)
			} else if !chance {
				t.Errorf("%s: check %q does not fail", b.name, check)
			}
		}
		if len(got) > 0 {
			t.Errorf("%s: checks %q fail too", b.name, got)
		}
	}
	if t.Failed() {
		passed := regexp.MustCompile(`(?m)^ *(=== RUN|--- PASS).*\n`)
		t.Logf("output:\n%s", passed.ReplaceAll(output, nil))
	}
}

func TestBroken(t *testing.T) {
	if os.Getenv("POLICYTEST_BROKEN") == "" {
		t.Skip("runs for TestRunFailsBrokenPolicies only: everything in it fails")
	}
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) { policytest.Run(t, b.make) })
	}
}

// underscored is a subtest's name as package testing shows it.
func underscored(name string) string { return strings.ReplaceAll(name, " ", "_") }
