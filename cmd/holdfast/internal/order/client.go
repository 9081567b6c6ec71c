package order

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasthttp"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/loopback"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// client talks to Payment. The policies are under its http.Clients, so that its methods
// are what they would be without any.
type client struct {
	base     string
	wire     *http.Transport
	charging *http.Client
	asking   *http.Client
}

// newClient puts each pipeline between an http.Client and the connections, which both
// share.
func newClient(c Config, charge, ask *holdfast.Pipeline, inFlight *gauge) client {
	wire := loopback.NewTransport()
	return client{
		base:     c.Payment,
		wire:     wire,
		charging: &http.Client{Transport: holdfasthttp.NewTransport(&meter{wire, inFlight}, charge, c.ChargeOptions...)},
		asking:   &http.Client{Transport: holdfasthttp.NewTransport(wire, ask)},
	}
}

// Key is an Idempotency-Key for a charge: the order, which is charged once. It is meant
// for holdfasthttp.IdempotencyKey, and for a Payment that charges each order once.
func Key(charge *http.Request) string { return path.Base(charge.URL.EscapedPath()) }

// charge asks Payment to take the money for an order. The answer may be a fallback's.
func (c *client) charge(ctx context.Context, order string) (*Answer, error) {
	return call[Answer](ctx, c.charging, http.MethodPost, c.url(order))
}

// ask asks Payment whether an order was paid.
func (c *client) ask(ctx context.Context, order string) (*payment.Receipt, error) {
	return call[payment.Receipt](ctx, c.asking, http.MethodGet, c.url(order))
}

func (c *client) url(order string) string { return c.base + "/payments/" + url.PathEscape(order) }

func (c *client) close() { c.wire.CloseIdleConnections() }

// statusError is an answer without what was asked for.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("status %d %s", e.code, http.StatusText(e.code))
}

func call[T any](ctx context.Context, c *http.Client, method, url string) (*T, error) {
	var reply T
	code, err := loopback.Call(ctx, c, method, url, &reply)
	switch {
	case code >= http.StatusMultipleChoices:
		return nil, &statusError{code}
	case err != nil:
		return nil, err
	default:
		return &reply, nil
	}
}

// A meter counts the calls that reach the wire: it is below all policies, which may
// refuse a call or make several of one.
type meter struct {
	wire     http.RoundTripper
	inFlight *gauge
}

// RoundTrip implements http.RoundTripper.
func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	defer m.inFlight.enter()()
	resp, err := m.wire.RoundTrip(req)
	triesOf(req.Context()).add(resp, err)
	return resp, err
}
