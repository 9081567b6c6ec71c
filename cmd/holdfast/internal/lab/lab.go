// Package lab runs the two services of the lab, Payment and Order, on 127.0.0.1.
package lab

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasthttp"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/loopback"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/order"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// Config says how the services are made.
type Config struct {
	PaymentPort, OrderPort int             // 0: a free one
	Slow                   time.Duration   // how long a slow Payment waits
	Charge, Ask            holdfast.Layers // see order.Config
	ChargeOptions          []holdfasthttp.Option
}

// A Lab is the two services, running.
type Lab struct {
	Payment *payment.Service
	Order   *order.Service

	paymentServer, orderServer *loopback.Server
}

// Start begins to serve. The caller must call Close.
func Start(c Config) (*Lab, error) {
	l := &Lab{Payment: payment.New(c.Slow)}
	var err error
	if l.paymentServer, err = loopback.Serve(c.PaymentPort, l.Payment.Handler()); err != nil {
		return nil, fmt.Errorf("payment service: %w", err)
	}
	l.Order = order.New(order.Config{
		Payment: l.paymentServer.URL, Charge: c.Charge, ChargeOptions: c.ChargeOptions, Ask: c.Ask,
	})
	if l.orderServer, err = loopback.Serve(c.OrderPort, l.Order.Handler()); err != nil {
		l.paymentServer.Close()
		return nil, fmt.Errorf("order service: %w", err)
	}
	return l, nil
}

// PaymentURL is where Payment listens.
func (l *Lab) PaymentURL() string { return l.paymentServer.URL }

// OrderURL is where Order listens.
func (l *Lab) OrderURL() string { return l.orderServer.URL }

// Close shuts the services down and returns when nothing of them runs any more.
// Payments that wait fail at once, so that the orders which wait for them can be
// answered; then Order goes before the dependency it calls.
func (l *Lab) Close() {
	l.Payment.Close()
	l.orderServer.Close()
	l.Order.Close()
	l.paymentServer.Close()
}
