package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// exam is the check of a service in the texts that the lab follows, and the check of that
// check.
func exam() Scenario {
	return Scenario{
		Name:  "check",
		Shows: "Payment down, then well: five checks of a protected service, and of a naive one, where three must fail",
		Takes: 6500 * time.Millisecond,
		Parts: []Part{
			{
				Name: "protected", Mode: payment.Down, Protection: timeoutAndBreaker,
				Orders: 10, Every: 100 * time.Millisecond, Run: examine,
			},
			{
				Name: "naive", Mode: payment.Down,
				Orders: 10, Every: 100 * time.Millisecond, Run: examine,
			},
		},
		Judge: judgeExam,
	}
}

func examine(ctx context.Context, b *Bench) error {
	return inTurn(
		func() error { return b.Send(ctx) },
		func() error { return b.Stats(ctx) },
		func() error { return b.Circuit(ctx) },
		func() error { return b.Mode(ctx, payment.OK) },
		func() error { return b.Sleep(ctx, 5500*time.Millisecond) },
		func() error { return b.Order(ctx, "probe") },
		func() error { return b.Circuit(ctx) },
	)
}

func judgeExam(parts []Measured) []Check {
	protected, naive := parts[0], parts[1]
	checks := five(protected, [5]string{"5", "7, 3, 6, 4 ms", "open", "PAID", "closed"})
	for i, c := range five(naive, [5]string{"10", "< 50 ms", "none", "PAID", "none"}) {
		if i%2 == 0 { // the first, third and fifth: it has to be able to fail
			c.Expected, c.OK = "must fail: "+c.Expected, !c.OK
		} else {
			c.Expected = "must pass: " + c.Expected
		}
		checks = append(checks, c.In(naive.Part))
	}
	return checks
}

// five are the checks that a protected service passes.
func five(m Measured, documents [5]string) []Check {
	var last []Reply
	for _, r := range m.Orders {
		if r.Number > 6 {
			last = append(last, r)
		}
	}
	return []Check{
		atMost("received of the first 10", m.Payment[0].Received, 6, documents[0]),
		{
			"slowest of the last 4", showReal(slowest(last)), fmt.Sprintf("< %s", show(atOnce)), documents[1],
			len(last) == 4 && quick(last) == 4,
		},
		is("circuit", m.State(0), "open", documents[2]),
		is("first order after the wait", m.Status("probe"), payment.Paid, documents[3]),
		is("circuit after it", m.State(1), "closed", documents[4]),
	}
}
