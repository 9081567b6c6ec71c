package scenario

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// protected is the same outages with one policy more each time.
func protected() []Scenario {
	return []Scenario{
		{
			Name:  "timeout-slow",
			Shows: "a timeout of 1 s, Payment slow, an order every 200 ms: nobody waits long, all hit it",
			Takes: 9 * time.Second,
			Parts: []Part{{
				Mode: payment.Slow, Protection: timeoutOnly,
				Orders: 20, Every: 200 * time.Millisecond,
			}},
			Judge: func(parts []Measured) []Check {
				m := parts[0]
				return []Check{
					answers(m, "20 timed out"),
					waited(m, time.Second, 1500*time.Millisecond, "1.00 s – 1.04 s"),
					equal("received by Payment", m.Received(), 20, "20"),
				}
			},
		},
		{
			Name:  "breaker-slow",
			Shows: "and a breaker, Payment slow, an order every 200 ms: it learns, and refuses at once",
			Takes: 7 * time.Second,
			Parts: []Part{{
				Mode: payment.Slow, Protection: timeoutAndBreaker,
				Orders: 20, Every: 200 * time.Millisecond, Run: sendAndRead,
			}},
			Judge: func(parts []Measured) []Check {
				m := parts[0]
				return []Check{
					answers(m, "20 unavailable"),
					between("received by Payment", m.Received(), 8, 12, "11"),
					refused(m, 20-m.Received(), "9 in about 3 ms"),
					is("circuit", m.State(0), "open", "open"),
				}
			},
		},
		{
			Name:  "breaker-down",
			Shows: "the same, Payment down, an order every 100 ms: five tell enough",
			Takes: 2 * time.Second,
			Parts: []Part{{
				Mode: payment.Down, Protection: timeoutAndBreaker,
				Orders: 20, Every: 100 * time.Millisecond,
			}},
			Judge: func(parts []Measured) []Check {
				m := parts[0]
				return []Check{
					answers(m, "20 unavailable"),
					equal("received by Payment", m.Received(), 5, "5"),
					refused(m, 15, "15, all in ≤ 42 ms"),
				}
			},
		},
		{
			Name:  "burst",
			Shows: "the same, Payment slow, 20 orders at once: a breaker has nothing to judge yet",
			Takes: 5 * time.Second,
			Parts: []Part{{Mode: payment.Slow, Protection: timeoutAndBreaker, Orders: 20}},
			Judge: func(parts []Measured) []Check {
				m := parts[0]
				return []Check{
					answers(m, "20 unavailable"),
					equal("received by Payment", m.Received(), 20, "20"),
					fact("slowest order", show(m.Slowest()), "1.05 s"),
				}
			},
		},
		{
			Name:  "bulkhead-burst",
			Shows: "and a bulkhead of 5, Payment slow, 20 orders at once: it holds back the burst",
			Takes: 5 * time.Second,
			Parts: []Part{{Mode: payment.Slow, Protection: withBulkhead(5), Orders: 20}},
			Judge: func(parts []Measured) []Check {
				m := parts[0]
				return []Check{
					answers(m, ""),
					equal("received by Payment", m.Received(), 5, "5"),
					refused(m, 15, "15"),
				}
			},
		},
		{
			Name:  "one-failure",
			Shows: "a breaker without MinimumCalls, one failure, then Payment is well: why the option exists",
			Takes: 600 * time.Millisecond,
			Parts: []Part{{
				Mode: payment.Down, Protection: hairTrigger,
				Orders: 6, Every: 100 * time.Millisecond, Before: wellAfterOne, Run: sendAndRead,
			}},
			Judge: func(parts []Measured) []Check {
				m := parts[0]
				return []Check{
					equal("received by Payment", m.Received(), 1, "1"),
					refused(m, 5, "5"),
					is("circuit", m.State(0), "open", "open"),
				}
			},
		},
	}
}

// sendAndRead reads the breaker as soon as the last order is answered.
func sendAndRead(ctx context.Context, b *Bench) error {
	if err := b.Send(ctx); err != nil {
		return err
	}
	return b.Circuit(ctx)
}

// wellAfterOne has Payment recover after the first order.
func wellAfterOne(ctx context.Context, b *Bench, number int) error {
	if number == 2 {
		return b.Mode(ctx, payment.OK)
	}
	return nil
}
