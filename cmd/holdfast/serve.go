package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/lab"
)

func newServe() *cobra.Command {
	var (
		config lab.Config
		naive  bool
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the two services, Payment and Order, to play with",
		Long: `Run the two services on 127.0.0.1 until interrupted: Payment, which can be
broken, and Order, which charges orders through a pipeline. Prints the curl
lines to play with, and every change of the circuit's state.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			config.Slow = 5 * time.Second
			if !naive {
				config.Charge, config.Ask = charging(out), asking()
			}
			l, err := lab.Start(config)
			if err != nil {
				return fmt.Errorf("%w (change ports with --payment-port and --order-port)", err)
			}
			defer l.Close()
			if err := welcome(out, l); err != nil {
				return reporting(err)
			}
			<-cmd.Context().Done()
			return cmd.Context().Err()
		},
	}
	cmd.Flags().IntVar(&config.OrderPort, "order-port", 3001, "where Order listens; 0: a free port")
	cmd.Flags().IntVar(&config.PaymentPort, "payment-port", 3002, "where Payment listens; 0: a free port")
	cmd.Flags().BoolVar(&naive, "naive", false, "call Payment without any protection")
	return cmd
}

// charging is around each charge. There is no retry: it would repeat nothing without an
// Idempotency-Key, and Payment is not idempotent unless it is told to be.
func charging(log io.Writer) holdfast.Layers {
	return holdfast.Layers{
		Name:     "charge",
		Timeout:  timeout.New(time.Second),
		Bulkhead: bulkhead.New(20),
		Breaker: breaker.New("payment",
			breaker.FailureRate(0.5, breaker.Within(10*time.Second)),
			breaker.MinimumCalls(5),
			breaker.OpenFor(5*time.Second),
			breaker.OnStateChange(func(t breaker.Transition) {
				_, _ = fmt.Fprintf(log, "%s  circuit %s → %s: %s\n", t.At.Format("15:04:05.000"), t.From, t.To, t.Reason)
			}),
		),
	}
}

// asking is around the question whether an order was paid, which may be repeated.
func asking() holdfast.Layers {
	return holdfast.Layers{
		Name:    "ask",
		Timeout: timeout.New(time.Second),
		Breaker: breaker.New("payment-status"),
		Retry:   retry.New(retry.Attempts(3)),
	}
}

func welcome(out io.Writer, l *lab.Lab) error {
	_, err := fmt.Fprintf(out, `Payment listens on %[1]s, and can be broken.
Order listens on %[2]s, and charges through
  %[3]s

place an order             curl -X POST %[2]s/orders/order-1
what really happened?      curl %[2]s/orders/order-1/payment
needs no Payment           curl %[2]s/data2
the circuit                curl %[2]s/admin/breaker
orders that wait           curl %[2]s/admin/stats

break Payment              curl -X POST %[1]s/admin/mode/slow
                           curl -X POST %[1]s/admin/mode/down
                           curl -X POST '%[1]s/admin/mode/flaky?failRate=0.3'
heal it                    curl -X POST %[1]s/admin/mode/ok
charge each order once     curl -X POST %[1]s/admin/idempotency/on
what reached it            curl %[1]s/admin/stats
start afresh               curl -X POST %[1]s/admin/reset

Interrupt to stop.
`, l.PaymentURL(), l.OrderURL(), l.Order.Pipeline())
	return err
}
