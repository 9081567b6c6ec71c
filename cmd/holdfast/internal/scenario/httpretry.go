package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/order"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// httpRetry is what a retry under an http.Client repeats, and what it must not.
func httpRetry() Scenario {
	return Scenario{
		Name:  "http-retry",
		Shows: "3 of 10 requests fail, up to 3 attempts: what a retry repeats over HTTP, and what it costs to repeat all",
		Note: "Half of the failures have charged, and only the answer was lost: hence a POST is repeated only if it has an\n" +
			"Idempotency-Key, or with RetryAll, which charges some orders twice.",
		Takes: 4 * time.Second,
		Parts: []Part{
			flaky("GET", Part{Asks: true}, (*Bench).askInTurn),
			flaky("POST", Part{}, (*Bench).sendInTurn),
			flaky("POST with a key", Part{Idempotent: true}, (*Bench).sendInTurn),
			flaky("POST, RetryAll", Part{Reckless: true}, (*Bench).sendInTurn),
		},
		Judge: judgeHTTPRetry,
	}
}

// flaky makes a part of its peculiarities. Half of what fails has charged, and only the
// answer was lost: that is what makes a second attempt dangerous. Requests are made in
// turn, so that each part meets the same luck each time.
func flaky(name string, part Part, inTurnAll func(*Bench, context.Context) error) Part {
	part.Name, part.Orders, part.Protection = name, 100, retryOnly
	part.Run = func(ctx context.Context, b *Bench) error {
		return inTurn(
			func() error { return b.Mode(ctx, payment.Flaky+"?failRate=0.3&lost=0.5") },
			func() error { return inTurnAll(b, ctx) },
		)
	}
	return part
}

// sendInTurn sends each order when the one before is answered.
func (b *Bench) sendInTurn(ctx context.Context) error {
	for number := 1; number <= b.part.Orders; number++ {
		if err := b.send(ctx, name(number), number); err != nil {
			return err
		}
	}
	return nil
}

// askInTurn asks about each order when the question before is answered.
func (b *Bench) askInTurn(ctx context.Context) error {
	for number := 1; number <= b.part.Orders; number++ {
		if err := b.Ask(ctx, number); err != nil {
			return err
		}
		b.answered()
	}
	return nil
}

// Where 3 of 10 requests fail, 100 calls of up to 3 attempts are 139 requests, of which
// 3 calls get no answer.
func judgeHTTPRetry(parts []Measured) []Check {
	get, post, keyed, reckless := parts[0], parts[1], parts[2], parts[3]
	notDenied := len(post.With(payment.Paid)) + len(post.With(order.Pending))
	return []Check{
		repeated(get.last().Asked, "questions").In(get.Part),
		atLeast("answered", get.Known(), 94, "").In(get.Part),

		equal("received by Payment, of 100 orders", post.Received(), 100, "").In(post.Part),
		between("paid", len(post.With(payment.Paid)), 60, 80, "").In(post.Part),
		answers(post, "").In(post.Part),
		between("charges", post.Charges(), 80, 100, "").In(post.Part),
		equal("charges, beside PAID and PENDING", post.Charges(), notDenied, "").In(post.Part),

		repeated(keyed.Received(), "orders").In(keyed.Part),
		atLeast("paid", len(keyed.With(payment.Paid)), 94, "").In(keyed.Part),
		between("charges", keyed.Charges(), len(keyed.With(payment.Paid)), 100, "").In(keyed.Part),

		repeated(reckless.Received(), "orders").In(reckless.Part),
		atLeast("charges", reckless.Charges(), 105, "").In(reckless.Part),
	}
}

// repeated checks that what fails is repeated, and nothing else is.
func repeated(received int, of string) Check {
	return between(fmt.Sprintf("received by Payment, of 100 %s", of), received, 125, 155, "")
}
