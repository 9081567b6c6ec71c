package report

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/scenario"
)

// intro is all that a reader has to know who has seen nothing else of the lab.
const intro = `Order takes customers' orders, and calls Payment to charge each. Payment can be broken: made slow, down or flaky.
Both are real HTTP servers on 127.0.0.1, new ones for each scenario; between them stand the policies of Holdfast.

%s, about %s. %s

Unless a scenario says otherwise, a timeout is 1 s, a slow Payment takes 5 s, and a breaker opens for 5 s once half of at
least 5 calls within 10 s have failed. Order answers PAYMENT_PENDING where it did not ask Payment or got no answer, and
PAYMENT_FAILED only where Payment said no.

Under each title stand the policies in the order in which a call passes through them, and then a table:
  ok, FAIL       was it as it must be? A row with neither is a fact beside the checks
  measured       in this run, on this machine
  must be        what the scenario has to show
  others report  only to compare: what the texts which the lab follows report of other libraries on other machines;
                 in quotes stands their word for what Order calls PAYMENT_PENDING or PAYMENT_FAILED
`

// Begin tells what the lab is, what is about to run, and how long it will take.
func (t Text) Begin(scenarios []scenario.Scenario, pace scenario.Pace) error {
	var takes time.Duration
	for _, s := range scenarios {
		takes += s.Takes
	}
	_, err := fmt.Fprintf(t.Out, intro, count(len(scenarios), "scenario"), seconds(pace.Of(takes)), times(pace))
	return err
}

// times tells how to read durations.
func times(pace scenario.Pace) string {
	how := fmt.Sprintf("%.3g times faster", float64(pace))
	switch {
	case pace == 1:
		return "This run is at full speed."
	case pace < 1:
		how = fmt.Sprintf("%.3g times slower", 1/float64(pace))
	}
	return "Times are shown as at full speed (this run is " + how + "), except those marked real."
}
