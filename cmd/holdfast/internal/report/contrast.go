package report

import (
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/scenario"
)

// A contrast is one number without and with a policy.
type contrast struct {
	what          string
	before, after side
	thanksTo      string
	count         func(scenario.Summary) int
}

// A side is the part of a scenario where it is counted.
type side struct{ scenario, part string }

var contrasts = []contrast{
	{
		"calls that hang at the same time on a Payment which takes 20 s",
		side{"slow-provider", "no protection"},
		side{"slow-provider", "timeout, bulkhead, breaker"},
		"timeout, bulkhead, breaker",
		func(s scenario.Summary) int { return s.MaxInFlight },
	},
	{
		"requests to a Payment which is down, for 20 orders",
		side{"retry-storm", "no breaker"},
		side{"retry-storm", "breaker"},
		"a breaker inside the retry",
		func(s scenario.Summary) int { return s.Received },
	},
	{
		"charges for 20 orders, when all customers of a slow Payment pay again",
		side{"trap", "without idempotency"},
		side{"trap", "with idempotency"},
		"an idempotent Payment",
		func(s scenario.Summary) int { return s.Charges },
	},
	{
		"customers of a slow Payment who are answered at once, of 20",
		side{"timeout-slow", ""},
		side{"breaker-slow", ""},
		"a breaker around the timeout",
		func(s scenario.Summary) int { return s.AnsweredAtOnce },
	},
}

// inShort is the table of the contrasts whose sides have both been measured. It is empty
// if there are none.
func inShort(results []scenario.Result) string {
	w := newTable()
	w.AppendHeader(table.Row{"in short", "before", "after", "thanks to"})
	for _, c := range contrasts {
		before, ok1 := find(results, c.before)
		after, ok2 := find(results, c.after)
		if ok1 && ok2 {
			w.AppendRow(table.Row{c.what, c.count(before), c.count(after), c.thanksTo})
		}
	}
	if w.Length() == 0 {
		return ""
	}
	right := text.AlignRight
	w.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: right, AlignHeader: right}, {Number: 3, Align: right, AlignHeader: right},
	})
	return fmt.Sprintf("\n%s\n", w.Render())
}

func find(results []scenario.Result, s side) (scenario.Summary, bool) {
	for _, r := range results {
		i := slices.IndexFunc(r.Parts, func(p scenario.Summary) bool { return r.Scenario == s.scenario && p.Part == s.part })
		if i >= 0 {
			return r.Parts[i], true
		}
	}
	return scenario.Summary{}, false
}
