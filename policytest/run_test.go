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
	for _, m := range messages {
		_, section, _ := strings.Cut(string(output), "=== RUN   TestBroken/"+underscored(m.broken)+"/"+underscored(m.check)+"\n")
		section, _, _ = strings.Cut(section, "\n=== RUN")
		if !strings.Contains(section, m.want) || strings.Count(section, "\n") > m.lines {
			t.Errorf("%s: check %q says %q in more than %d lines, or lacks %q", m.broken, m.check, section, m.lines, m.want)
		}
	}
	if t.Failed() {
		passed := regexp.MustCompile(`(?m)^ *(=== RUN|--- PASS).*\n`)
		t.Logf("output:\n%s", passed.ReplaceAll(output, nil))
	}
}

// messages are what checks must say, and in how many lines.
var messages = []struct {
	broken, check, want string
	lines               int
}{
	{"a plain sleep", "cancel ends every wait", "a wait has to end with it, as policy.Sleep does", 3},
	{"done ctx not looked at", "done context", "error <nil>, want one that Is context canceled: policy.ContextError(ctx)", 2},
	{"cause lost", "done context", "want one that Is context canceled and Is its cause, policytest: the caller left", 2},
	{"lock across the call", "no lock across the call", "1 × sync.Mutex.Lock\n", 8},
	{"a place that is lost, and waited for", "storm", " × chan send\n", 20},
	{"janitor", "no goroutine of its own", "1 × chan receive\n", 8},
	{"goroutines of many kinds", "no goroutine of its own", "and 2 other stacks", 30},
	{"value lost where nobody judges", "value is returned or discarded", "values of failed calls, Keepers but no Judges", 2},
	{"value lost by an observer's panic", "value is returned or discarded", "values of successes, where an observer panics", 2},
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
