package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/cases"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/scale"
)

// invented is a report in which the i-th implementation of every case costs i+1 times
// ten nanoseconds.
func invented() Report {
	r := Report{
		Machine: ThisMachine(), Peers: Peers(), Plan: measure.Plan{Rounds: 3, Batch: time.Millisecond},
		Charts: []scale.Chart{{
			Key: "chart", Title: "A chart", Axis: "things", Sizes: []int{1, 10},
			Curves: []scale.Curve{{Name: "one", Nanos: []float64{1, 2}}, {Name: "two", Nanos: []float64{3, 4}}},
		}},
		Memory: []scale.Memory{{Name: "a thing", Idle: 100}},
	}
	for _, c := range cases.All() {
		result := CaseResult{Case: c}
		for i := range c.Implementations {
			ns := 10 * float64(i+1)
			result.Found = append(result.Found, measure.Measurement{
				Time: [3]measure.Series{{ns, ns, ns}, {ns, ns, ns}, {ns, ns, ns}},
			})
		}
		r.Cases = append(r.Cases, result)
	}
	return r
}

func TestEveryGoalIsJudged(t *testing.T) {
	r := invented()
	for _, g := range goals {
		if _, ok := r.judge(g); !ok {
			t.Errorf("goal %q names an implementation that no case has", g.text)
		}
	}
	for _, g := range allocationGoals {
		if _, ok := r.find(g.ours); !ok {
			t.Errorf("goal %q names an implementation that no case has", g.text)
		}
	}
	if got, want := len(r.Verdicts()), len(goals)+len(allocationGoals); got != want {
		t.Errorf("%d verdicts, want %d", got, want)
	}
}

func TestAGoalTakesTheCheapestOfItsRivals(t *testing.T) {
	r := invented()
	v, ok := r.judge(goal{
		ours: ref{"retry-success", "holdfast"}, against: in("retry-success", "go-retry", "fortify"), atMost: 0.3,
	})
	if want := (Verdict{Mode: "serial", Against: "fortify", Found: "0.33", Limit: "0.30"}); !ok || v != want {
		t.Errorf("verdict %+v, want %+v", v, want)
	}
}

func TestThePageHasEveryCaseAndItsPlot(t *testing.T) {
	r := invented()
	var page strings.Builder
	if err := r.Markdown(&page, "plots"); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Cases {
		for _, want := range []string{"\n### " + c.Title + "\n", "(plots/" + c.Key + ".svg)", c.About} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("%s: the page lacks %q", c.Key, want)
			}
		}
	}
	if strings.Contains(page.String(), "%!") {
		t.Error("the page has a formatting error")
	}
}

func TestPlotsAreDrawn(t *testing.T) {
	r, dir := invented(), t.TempDir()
	if err := WriteCase(filepath.Join(dir, "case.svg"), r.Cases[0]); err != nil {
		t.Fatal(err)
	}
	if err := WriteChart(filepath.Join(dir, "chart.svg"), r.Charts[0]); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"case.svg": "bare call", "chart.svg": "things"} {
		svg, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(svg), want) {
			t.Errorf("%s: %v, or it lacks %q", file, err, want)
		}
	}
}

func TestOnWhatTheTimeGoes(t *testing.T) {
	var out strings.Builder
	writeSpent(&page{w: &out}, []Verdict{
		{Goal: "met", Met: true, Spent: "nothing"},
		{Goal: "missed, unknown"},
		{Goal: "missed", Spent: "the clock"},
		{Goal: "missed", Spent: "the clock"}, // at two processors
	})
	if got, want := out.String(), "\nOn what the time goes where a goal is missed, by CPU profile:\n\n- missed: the clock.\n"; got != want {
		t.Errorf("page %q, want %q", got, want)
	}
}
