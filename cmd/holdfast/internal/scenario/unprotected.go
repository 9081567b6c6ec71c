package scenario

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/order"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// unprotected is what an outage does where nothing stands between.
func unprotected() []Scenario {
	return []Scenario{
		{
			Name:  "healthy",
			Shows: "Payment is well, 10 orders at once, no protection: nothing needs any",
			Parts: []Part{{Orders: 10}},
			Judge: func(parts []Measured) []Check {
				return []Check{
					equal("orders paid", len(parts[0].With(payment.Paid)), 10, "10"),
					fact("slowest order", showReal(slowest(parts[0].Orders)), "57 ms"),
				}
			},
		},
		{
			Name:  "naive-slow",
			Shows: "Payment slow, 20 orders at once, no protection: everybody waits",
			Takes: 5 * time.Second,
			Parts: []Part{{Mode: payment.Slow, Orders: 20, Run: sendAndLookAside}},
			Judge: judgeNaiveSlow,
		},
		{
			Name:  "naive-down",
			Shows: "Payment down, 20 orders at once, no protection: all of them hit it",
			Parts: []Part{{Mode: payment.Down, Orders: 20}},
			Judge: func(parts []Measured) []Check {
				m := parts[0]
				return []Check{
					equal("orders failed", len(m.With(order.Failed)), 20, "20"),
					equal("received by Payment", m.Received(), 20, "20"),
				}
			},
		},
	}
}

// sendAndLookAside asks for the other route while the orders wait.
func sendAndLookAside(ctx context.Context, b *Bench) error {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return b.Send(ctx) })
	both.Go(func() error {
		if err := b.Sleep(ctx, 2*time.Second); err != nil {
			return err
		}
		return b.Data2(ctx)
	})
	return both.Wait()
}

func judgeNaiveSlow(parts []Measured) []Check {
	m := parts[0]
	data2 := "no answer"
	if m.Data2.Code == http.StatusOK {
		data2 = "answered"
	}
	return []Check{
		answers(m, "20 PAID"),
		waited(m, 5*time.Second, 6*time.Second, "5.03 s – 5.04 s"),
		equal("waiting at the same time", m.Order.MaxWaiting, 20, "20"),
		equal("received by Payment", m.Received(), 20, "20"),
		is("/data2 meanwhile", data2, "answered", "answered"),
		fact("/data2 took", showReal(m.Data2.Took), ""),
	}
}
