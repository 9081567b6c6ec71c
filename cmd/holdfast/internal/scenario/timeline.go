package scenario

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// timeline is one breaker, watched call by call.
func timeline() Scenario {
	return Scenario{
		Name:  "timeline",
		Shows: "Payment down for 4 s, a call every 400 ms, a breaker open for 2 s after 3 failures in a row: call by call",
		Note:  "What others report came at other times; the states are the same.",
		Takes: 6500 * time.Millisecond,
		Parts: []Part{{
			Mode: payment.Down, Protection: threeInARow,
			Orders: len(story), Every: 400 * time.Millisecond, Run: callByCall,
		}},
		Judge: judgeTimeline,
	}
}

// What can be seen of one call.
const (
	failed = "sent, HTTP 500"
	passed = "sent, HTTP 200"
	held   = "refused, not sent"
)

// story is what each of the calls must show, what state the circuit must be in
// after it, and when others made theirs.
var story = []struct {
	call, state string
	documents   time.Duration
}{
	{failed, "closed", 0},
	{failed, "closed", 1255 * time.Millisecond},
	{failed, "open", 1738 * time.Millisecond},
	{held, "open", 2174 * time.Millisecond},
	{held, "open", 2579 * time.Millisecond},
	{held, "open", 2983 * time.Millisecond},
	{held, "open", 3384 * time.Millisecond},
	{failed, "open", 3785 * time.Millisecond}, // the trial
	{held, "open", 4224 * time.Millisecond},
	{held, "open", 4629 * time.Millisecond},
	{held, "open", 5035 * time.Millisecond},
	{held, "open", 5438 * time.Millisecond},
	{passed, "closed", 5841 * time.Millisecond}, // the next trial
	{passed, "closed", 6272 * time.Millisecond},
	{passed, "closed", 6711 * time.Millisecond},
	{passed, "closed", 7154 * time.Millisecond},
}

// callByCall makes one call, then a pause, and reads the circuit after each.
func callByCall(ctx context.Context, b *Bench) error {
	const outage = 4 * time.Second
	well := false
	for number := 1; number <= b.part.Orders; number++ {
		if !well && b.Elapsed() >= outage {
			if err := b.Mode(ctx, payment.OK); err != nil {
				return err
			}
			well = true
		}
		err := inTurn(
			func() error { return b.send(ctx, name(number), number) },
			func() error { return b.Circuit(ctx) },
			func() error { return b.Sleep(ctx, b.part.Every) },
		)
		if err != nil {
			return err
		}
	}
	return nil
}

func judgeTimeline(parts []Measured) []Check {
	m := parts[0]
	var checks []Check
	for i, want := range story {
		seen, at := "no answer", time.Duration(0)
		if i < len(m.Orders) {
			seen, at = call(m.Orders[i]), m.Orders[i].At
		}
		checks = append(checks, is(
			fmt.Sprintf("request %2d at %4d ms", i+1, at.Milliseconds()),
			seen+", "+m.State(i),
			want.call+", "+want.state,
			fmt.Sprintf("%s (at %d ms)", want.state, want.documents.Milliseconds()),
		))
	}
	return append(checks, equal("received while Payment was down", sent(m.Orders, 8), 4, "4 of 8"))
}

// call tells what became of an order on its way to Payment.
func call(r Reply) string {
	switch {
	case r.Refused():
		return held
	case r.Code == http.StatusOK:
		return passed
	default:
		return failed
	}
}

// sent counts the calls to Payment that the first n orders made.
func sent(orders []Reply, n int) int {
	calls := 0
	for _, r := range orders[:min(n, len(orders))] {
		calls += r.Answer.Calls
	}
	return calls
}
