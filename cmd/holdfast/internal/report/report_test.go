package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func result() scenario.Result {
	return scenario.Result{
		Scenario: "small", Shows: "a small thing", OK: false, Runs: 1, Speed: 4,
		Note:  "a note\nof two lines",
		Parts: []scenario.Summary{{Pipeline: "timeout(1s) → call", Orders: 2, Answers: map[string]int{"PAID": 2}, Received: 2}},
		Checks: []scenario.Check{
			{Name: "received", Measured: "2", Expected: "≤ 2", Documents: "1", OK: true},
			{Name: "refused", Measured: "0", Expected: "1"},
			{Name: "a fact", Measured: "7 ms", OK: true},
		},
	}
}

func TestResult(t *testing.T) {
	var out bytes.Buffer
	if err := (Text{Out: &out}).Result(result()); err != nil {
		t.Fatal(err)
	}
	want := `
small  a small thing
  Order calls Payment through: timeout(1s) → call
                 measured  must be  others report
──────────────────────────────────────────────────
 ok    received  2         ≤ 2      1
 FAIL  refused   0         1
       a fact    7 ms
  a note
  of two lines
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestColumnsWithNothingToSayAreLeftOut(t *testing.T) {
	var out bytes.Buffer
	r := result()
	r.Checks = r.Checks[1:]
	_ = (Text{Out: &out}).Result(r)
	if got := out.String(); strings.Contains(got, "others report") || !strings.Contains(got, "must be") {
		t.Errorf("got %s", got)
	}
}

func TestThrough(t *testing.T) {
	const timeout = "timeout(1s) → call"
	tests := []struct {
		name  string
		parts []scenario.Summary
		want  string
	}{
		{"could not be run", nil, ""},
		{"one", []scenario.Summary{{Pipeline: timeout}}, "  Order calls Payment through: timeout(1s) → call\n"},
		{"no policies", []scenario.Summary{{Pipeline: "call"}}, "  Order calls Payment through: call (no policies)\n"},
		{
			"the same in all parts",
			[]scenario.Summary{{Part: "a", Pipeline: timeout}, {Part: "b", Pipeline: timeout}},
			"  Order calls Payment through: timeout(1s) → call\n",
		},
		{
			"one for each part",
			[]scenario.Summary{{Part: "naive", Pipeline: "call"}, {Part: "a", Pipeline: timeout}},
			"  Order calls Payment through:\n    naive:  call (no policies)\n    a:      timeout(1s) → call\n",
		},
	}
	for _, tt := range tests {
		if got := through(tt.parts); got != tt.want {
			t.Errorf("%s: got\n%swant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestColour(t *testing.T) {
	for _, colour := range []bool{false, true} {
		var out bytes.Buffer
		text := Text{Out: &out, Colour: colour}
		_ = text.Begin(nil, 1)
		_ = text.Result(result())
		_ = text.End([]scenario.Result{result()}, time.Second)
		if got := strings.Contains(out.String(), "\x1b["); got != colour {
			t.Errorf("Colour %v: colour in the output: %v", colour, got)
		}
	}
}

func TestNotes(t *testing.T) {
	tests := []struct {
		name         string
		ok           bool
		runs         int
		stalled      int64
		want, noNote string
	}{
		{"undisturbed", true, 1, 2, "", "busy"},
		{"stalled, but showed it", true, 1, 200, "", "busy"},
		{"again", true, 2, 2, "Run 2 times, at last at speed 4: before, the machine was too busy.", ""},
		{"failed for good", false, 1, 2, "", "busy"},
		{"too busy", false, 3, 80, "too busy: it stalled for 80 ms (real), in the last of 3 runs at speed 4.", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			r := result()
			r.OK, r.Runs, r.StalledMS = tt.ok, tt.runs, tt.stalled
			_ = (Text{Out: &out}).Result(r)
			if got := out.String(); !strings.Contains(got, tt.want) || tt.noNote != "" && strings.Contains(got, tt.noNote) {
				t.Errorf("got %s, want %q", got, tt.want)
			}
		})
	}
}

func TestErrorInsteadOfChecks(t *testing.T) {
	var out bytes.Buffer
	_ = (Text{Out: &out}).Result(scenario.Result{Scenario: "small", Error: "too many open files"})
	if got := out.String(); !strings.Contains(got, "FAIL  too many open files") {
		t.Errorf("got %s", got)
	}
}

func TestBegin(t *testing.T) {
	tests := []struct {
		pace scenario.Pace
		want string
	}{
		{4, "2 scenarios, about 10 s. Times are shown as at full speed (this run is 4 times faster), except those marked real.\n"},
		{1, "2 scenarios, about 40 s. This run is at full speed.\n"},
		{0.5, "2 scenarios, about 80 s. Times are shown as at full speed (this run is 2 times slower), except those marked real.\n"},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		_ = (Text{Out: &out}).Begin([]scenario.Scenario{{Takes: 10 * time.Second}, {Takes: 30 * time.Second}}, tt.pace)
		for _, want := range []string{tt.want, "Order takes ", "Payment can be broken", "127.0.0.1", "must be  ", "others report  "} {
			if got := out.String(); !strings.Contains(got, want) {
				t.Errorf("at speed %v: no %q in\n%s", tt.pace, want, got)
			}
		}
	}
}

func TestEnd(t *testing.T) {
	var out bytes.Buffer
	text := Text{Out: &out}
	_ = text.End([]scenario.Result{{OK: true}, {OK: true}}, 12*time.Second)
	_ = text.End([]scenario.Result{{OK: true}, {Scenario: "small"}}, 12*time.Second)
	want := `
2 scenarios in 12 s: all showed what they must

2 scenarios in 12 s: 1 did not show what it must: [small]
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestInShort(t *testing.T) {
	storm := scenario.Result{Scenario: "retry-storm", Parts: []scenario.Summary{
		{Part: "no breaker", Received: 60}, {Part: "breaker", Received: 5},
	}}
	alone := scenario.Result{Scenario: "breaker-slow", Parts: []scenario.Summary{{AnsweredAtOnce: 11}}}
	want := `
 in short                                            before  after  thanks to
───────────────────────────────────────────────────────────────────────────────────────────────
 requests to a Payment which is down, for 20 orders      60      5  a breaker inside the retry
`
	if got := inShort([]scenario.Result{storm, alone}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := inShort([]scenario.Result{alone, {Scenario: "retry-storm", Error: "too many open files"}}); got != "" {
		t.Errorf("nothing to compare, but got\n%s", got)
	}
}

// Each contrast is between parts that there are.
func TestContrastsExist(t *testing.T) {
	for _, c := range contrasts {
		for _, side := range []side{c.before, c.after} {
			s, _ := scenario.Find(side.scenario)
			if !slices.ContainsFunc(s.Parts, func(p scenario.Part) bool { return p.Name == side.part }) {
				t.Errorf("%s: no part %q of %q", c.what, side.part, side.scenario)
			}
		}
	}
}

func TestList(t *testing.T) {
	var out bytes.Buffer
	_ = (Text{Out: &out}).List(scenario.All())
	for i, line := range strings.Split(strings.TrimRight(out.String(), "\n"), "\n") {
		if want := scenario.Names()[i]; strings.Fields(line)[0] != want {
			t.Errorf("line %d: %q, want %s", i, line, want)
		}
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := (JSON{&out}).Result(result()); err != nil {
		t.Fatal(err)
	}
	var got scenario.Result
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("%q: %v, want one line", out.String(), err)
	}
	if got.Scenario != "small" || got.OK || len(got.Checks) != 3 || got.Parts[0].Received != 2 {
		t.Errorf("%+v", got)
	}
}

// full is a disk that is.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	text := Text{Out: full{}}
	for name, err := range map[string]error{
		"begin":  text.Begin(nil, 1),
		"result": text.Result(result()),
		"end":    text.End(nil, 0),
		"list":   text.List(nil),
		"json":   JSON{full{}}.Result(result()),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v, want the writer's error", name, err)
		}
	}
}

func TestProgress(t *testing.T) {
	out := screen{want: "small", shown: make(chan struct{})}
	p := ShowProgress(&out, out.want, 10)
	var all sync.WaitGroup
	for range 12 { // extra orders count, too
		all.Go(p.Answered)
	}
	select {
	case <-out.shown:
	case <-time.After(10 * time.Second):
	}
	all.Wait()
	p.Stop()
	if got := out.String(); !strings.Contains(got, "small") {
		t.Errorf("got %q, want the name", got)
	}
}

// A screen tells when it shows what is wanted.
type screen struct {
	bytes.Buffer

	want  string
	once  sync.Once
	shown chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if strings.Contains(s.String(), s.want) {
		s.once.Do(func() { close(s.shown) })
	}
	return n, err
}

func TestNoProgress(*testing.T) {
	var p Progress
	p.Answered()
	p.Stop()
}
