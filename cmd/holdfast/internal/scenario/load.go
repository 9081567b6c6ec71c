package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// loads is a thousand orders.
func loads() []Scenario {
	return []Scenario{
		{
			Name:  "slow-provider",
			Shows: "Payment answers after 20 s, 200 orders a second for 5 s, three protections: what piles up",
			Takes: 32 * time.Second,
			// The third has to be fast, so it is over before the first begins: a thousand
			// calls that hang on are slow to collect garbage around. The second runs while
			// the first does nothing but wait.
			Parts: []Part{
				slowProvider("no protection", 6500*time.Millisecond, nil),
				slowProvider("timeout", 12500*time.Millisecond, timeoutOnly),
				slowProvider("timeout, bulkhead, breaker", 0, withBulkhead(20)),
			},
			Judge: judgeSlowProvider,
		},
		{
			Name:  "thousand",
			Shows: "Payment down for the middle third of 1000 orders, all policies: every customer is answered",
			Note:  "The breaker judges the last 10 calls and opens for 1 s.",
			Takes: 10 * time.Second,
			Parts: []Part{{
				Idempotent: true, Protection: everything,
				Orders: 1000, Every: 10 * time.Millisecond, Before: downInTheMiddle,
			}},
			Judge: judgeThousand,
		},
	}
}

func slowProvider(name string, after time.Duration, protection protection) Part {
	return Part{
		Name: name, After: after,
		Mode: payment.Slow, Slow: 20 * time.Second, Hasty: true, Protection: protection,
		Orders: 1000, Every: 5 * time.Millisecond,
	}
}

func judgeSlowProvider(parts []Measured) []Check {
	all := parts[2]
	return []Check{
		between("calls in flight", parts[0].MaxInFlight, 900, 1000, "towards 4000, in 20 s of it").In(parts[0].Part),
		between("calls in flight", parts[1].MaxInFlight, 150, 300, "around 200").In(parts[1].Part),
		atMost("calls in flight", all.MaxInFlight, 20, "foretold not to pile up").In(all.Part),
		atLeast(fmt.Sprintf("answered in < %s", show(atOnce)), quick(all.Orders), 950, "").In(all.Part),
		fact("received by Payment", fmt.Sprintf("%d, %d, %d", parts[0].Received(), parts[1].Received(), all.Received()), ""),
	}
}

// The third of the orders during which Payment is down.
const firstDown, lastDown = 334, 666

func downInTheMiddle(ctx context.Context, b *Bench, number int) error {
	switch number {
	case firstDown:
		return b.Mode(ctx, payment.Down)
	case lastDown + 1:
		return b.Mode(ctx, payment.OK)
	default:
		return nil
	}
}

func judgeThousand(parts []Measured) []Check {
	m := parts[0]
	down := m.where(func(r Reply) bool { return firstDown <= r.Number && r.Number <= lastDown })
	kept, fallbacks := 0, len(m.where(func(r Reply) bool { return r.Answer.Fallback }))
	for _, r := range down {
		if r.Refused() {
			kept++
		}
	}
	paid := len(m.With(payment.Paid))
	return []Check{
		equal("PAID + fallbacks", paid+fallbacks, 1000, "1000"),
		atLeast(fmt.Sprintf("kept from Payment, of the %d", len(down)), kept, 300, "90 % of 333"),
		fact("reached Payment", fmt.Sprint(len(m.Orders)-len(m.Refused())), ""),
		fact("refused", fmt.Sprint(len(m.Refused())), ""),
		fact("succeeded", fmt.Sprint(paid), ""),
		fact("fallbacks", fmt.Sprint(fallbacks), ""),
	}
}
