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
			Shows: "Payment slow, an order every 200 ms, a timeout: nobody waits long, but all hit it",
			Takes: 9 * time.Second,
			Parts: []Part{{
				Mode: payment.Slow, Protection: timeoutOnly,
				Orders: 20, Every: 200 * time.Millisecond,
			}},
			Judge: func(parts []Measured) []Check {
				m := parts[0]
				return []Check{
					answers(m, "20 "+theirs("timed out")),
					waited(m, time.Second, 1500*time.Millisecond, "1.00 s – 1.04 s"),
					equal("received by Payment", m.Received(), 20, "20"),
				}
			},
		},
		{
			Name:  "breaker-slow",
			Shows: "Payment slow, an order every 200 ms, a timeout and a breaker: it learns, then refuses at once",
			Takes: 7 * time.Second,
			Parts: []Part{{
				Mode: payment.Slow, Protection: timeoutAndBreaker,
				Orders: 20, Every: 200 * time.Millisecond, Run: sendAndRead,
			}},
			Judge: func(parts []Measured) []Check {
				m := parts[0]
				return []Check{
					answers(m, "20 "+theirs("unavailable")),
					between("received by Payment", m.Received(), 8, 12, "11"),
					refused(m, 20-m.Received(), "9 in about 3 ms"),
					is("circuit", m.State(0), "open", "open"),
				}
			},
		},
		{
			Name:  "breaker-down",
			Shows: "Payment down, an order every 100 ms, a timeout and a breaker: five failures tell enough",
			Takes: 2 * time.Second,
			Parts: []Part{{
				Mode: payment.Down, Protection: timeoutAndBreaker,
				Orders: 20, Every: 100 * time.Millisecond,
			}},
			Judge: func(parts []Measured) []Check {
				m := parts[0]
				return []Check{
					answers(m, "20 "+theirs("unavailable")),
					equal("received by Payment", m.Received(), 5, "5"),
					refused(m, 15, "15, all in ≤ 42 ms"),
				}
			},
		},
		{
			Name:  "burst",
			Shows: "Payment slow, 20 orders at once, a timeout and a breaker: the breaker has nothing to judge yet",
			Takes: 5 * time.Second,
			Parts: []Part{{Mode: payment.Slow, Protection: timeoutAndBreaker, Orders: 20}},
			Judge: func(parts []Measured) []Check {
				m := parts[0]
				return []Check{
					answers(m, "20 "+theirs("unavailable")),
					equal("received by Payment", m.Received(), 20, "20"),
					fact("slowest order", show(m.Slowest()), "1.05 s"),
				}
			},
		},
		{
			Name:  "bulkhead-burst",
			Shows: "Payment slow, 20 orders at once, a timeout, a breaker and a bulkhead of 5: 15 are held back",
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
			Shows: "one failure, then Payment is well, a breaker with MinimumCalls(1): one unlucky call shuts everybody out",
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
