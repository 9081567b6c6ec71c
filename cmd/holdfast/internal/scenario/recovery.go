package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/order"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// recoveries is what happens after an outage, and what retries make of one.
func recoveries() []Scenario {
	return []Scenario{
		{
			Name:  "recover",
			Shows: "Payment down for 10 orders, then well, a timeout and a breaker: open for 5 s, one trial, closed",
			Takes: 6 * time.Second,
			Parts: []Part{{
				Mode: payment.Down, Protection: timeoutAndBreaker,
				Orders: 10, Every: 100 * time.Millisecond, Run: recoverAndTry,
			}},
			Judge: judgeRecover,
		},
		{
			Name:  "trap",
			Shows: "Payment slow, a timeout and a breaker, and all customers pay again: a timeout is not a failure",
			Takes: 10 * time.Second,
			Parts: []Part{
				slowThenPayAgain("without idempotency", false),
				slowThenPayAgain("with idempotency", true),
			},
			Judge: judgeTrap,
		},
		{
			Name:  "retry-storm",
			Shows: "Payment down, 20 orders with up to 3 attempts, without and with a breaker: retries alone make it worse",
			Takes: 2200 * time.Millisecond,
			Parts: []Part{
				{
					Name: "no breaker", Mode: payment.Down, Idempotent: true, Protection: retryOnly,
					Orders: 20, Every: 100 * time.Millisecond,
				},
				{
					Name: "breaker", Mode: payment.Down, Idempotent: true, Protection: retryAndBreaker,
					Orders: 20, Every: 100 * time.Millisecond,
				},
			},
			Judge: func(parts []Measured) []Check {
				return []Check{
					equal("received by Payment", parts[0].Received(), 60, "60").In(parts[0].Part),
					atMost("received by Payment", parts[1].Received(), 7, "≤ 7").In(parts[1].Part),
				}
			},
		},
	}
}

// recoverAndTry sends one order as soon as Payment is well, one after 5 s, and one
// more.
func recoverAndTry(ctx context.Context, b *Bench) error {
	return inTurn(
		func() error { return b.Send(ctx) },
		func() error { return b.Mode(ctx, payment.OK) },
		func() error { return b.Order(ctx, "early") },
		func() error { return b.Sleep(ctx, 5*time.Second) },
		func() error { return b.Order(ctx, "probe") },
		func() error { return b.Order(ctx, "next") },
		func() error { return b.Circuit(ctx) },
	)
}

func judgeRecover(parts []Measured) []Check {
	m := parts[0]
	checks := []Check{
		is("one order at once", m.Status("early"), order.Pending, theirs("unavailable")),
		is("one after 5 s", m.Status("probe"), payment.Paid, "PAID"),
		is("one more", m.Status("next"), payment.Paid, "PAID"),
	}
	path, openFor := "closed", time.Duration(0)
	transitions := m.Transitions()
	for i, t := range transitions {
		path += " → " + t.To
		if i > 0 && t.From == "open" {
			openFor = m.Pace.Unscaled(t.At.Sub(transitions[i-1].At))
		}
	}
	return append(checks,
		is("circuit", path, "closed → open → half-open → closed", "open → half-open → closed"),
		Check{
			"half-open after", show(openFor), "5.00 s – 5.50 s", "5.00 s",
			5*time.Second <= openFor.Round(time.Millisecond) && openFor <= 5500*time.Millisecond,
		},
	)
}

// slowThenPayAgain lets Payment finish what nobody waits for any more, before it is
// well and all customers pay again.
func slowThenPayAgain(name string, idempotent bool) Part {
	return Part{
		Name: name, Mode: payment.Slow, Idempotent: idempotent, Protection: timeoutAndBreaker,
		Orders: 20, Every: 200 * time.Millisecond,
		Run: func(ctx context.Context, b *Bench) error {
			return inTurn(
				func() error { return b.Send(ctx) },
				func() error { return b.Ask(ctx, 7) },
				func() error { return b.Sleep(ctx, 6*time.Second) },
				func() error { return b.Ask(ctx, 7) },
				func() error { return b.Stats(ctx) },
				func() error { return b.Mode(ctx, payment.OK) },
				func() error { return b.PayAgain(ctx) },
			)
		},
	}
}

func judgeTrap(parts []Measured) []Check {
	without, with := parts[0], parts[1]
	before := without.Payment[0].Received
	repeated := 0
	for _, r := range with.PaidAgain {
		if r.Repeated {
			repeated++
		}
	}
	return []Check{
		answers(without, "20 "+theirs("unavailable")),
		is("order-7, as soon as all are answered", without.Asked[0].Status, payment.NotPaid, "NOT_PAID"),
		is("order-7, 6 s later", without.Asked[1].Status, payment.Paid, "PAID"),
		fact("charged although not confirmed", fmt.Sprintf("%d of %d received", without.Payment[0].Charges, before), "11 of 11"),
		twice(without, before).In(without.Part),
		equal("charges for 20 orders", with.Charges(), 20, "20").In(with.Part),
		fact("told that it had been paid", fmt.Sprint(repeated), "11").In(with.Part),
	}
}

// twice checks that whoever was charged before is charged again.
func twice(m Measured, before int) Check {
	c := equal("charges for 20 orders", m.Charges(), 20+before, "31 (20 + 11)")
	c.Expected += fmt.Sprintf(" (20 + %d)", before)
	return c
}

// inTurn takes one step after another, as far as they succeed.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
