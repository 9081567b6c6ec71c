package scenario

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/ratelimit"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/lab"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/loopback"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/order"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// A Bench is where a part runs: its services, the client that talks to them, and
// what has been measured so far.
type Bench struct {
	pace     Pace
	part     Part
	lab      *lab.Lab
	client   *http.Client
	start    time.Time
	answered func() // called after each order

	mu       sync.Mutex // guards the field below
	measured Measured
}

// open starts the services of a part. The caller must call close.
func open(pace Pace, part Part, answered func()) (*Bench, error) {
	services, err := lab.Start(lab.Config{
		Slow:          pace.Of(part.slow()),
		Charge:        part.charging(pace),
		ChargeOptions: part.chargeOptions(),
		Ask:           part.asking(pace),
	})
	if err != nil {
		return nil, err
	}
	return &Bench{
		pace:     pace,
		part:     part,
		lab:      services,
		client:   loopback.NewClient(),
		start:    time.Now(),
		answered: answered,
		measured: Measured{Part: part.Name, Pace: pace},
	}, nil
}

// close hangs up first: a server waits for connections that were never used.
func (b *Bench) close() {
	b.client.CloseIdleConnections()
	b.lab.Close()
}

// run runs the part and returns what was measured once everything has settled.
func (b *Bench) run(ctx context.Context) (Measured, error) {
	if err := b.prepare(ctx); err != nil {
		return Measured{}, err
	}
	b.start = time.Now()
	run := b.part.Run
	if run == nil {
		run = func(ctx context.Context, b *Bench) error { return b.Send(ctx) }
	}
	if err := run(ctx, b); err != nil {
		return Measured{}, err
	}
	return b.settle(ctx)
}

func (b *Bench) prepare(ctx context.Context) error {
	if b.part.Idempotent {
		if err := b.admin(ctx, "/admin/idempotency/on"); err != nil {
			return err
		}
	}
	if b.part.Mode == "" {
		return nil
	}
	return b.Mode(ctx, b.part.Mode)
}

// settle waits until Payment has charged whatever it is going to charge, and reads
// the counters.
func (b *Bench) settle(ctx context.Context) (Measured, error) {
	for !b.part.Hasty && b.lab.Payment.Pending() > 0 {
		if err := policy.Sleep(ctx, policy.SystemClock, time.Millisecond); err != nil {
			return Measured{}, err
		}
	}
	if err := b.Stats(ctx); err != nil {
		return Measured{}, err
	}
	if _, err := loopback.Call(ctx, b.client, http.MethodGet, b.lab.OrderURL()+"/admin/stats", &b.measured.Order); err != nil {
		return Measured{}, err
	}
	b.measured.MaxInFlight = b.lab.Order.MaxInFlight()
	return b.measured, nil
}

// Send sends the part's orders at the part's rate, and returns when all of them are
// answered.
//
// Orders that are late, because the machine was busy, are not sent in one burst but
// at the rate, up to a few milliseconds' worth: a burst is another scenario.
func (b *Bench) Send(ctx context.Context) error {
	senders, ctx := errgroup.WithContext(ctx)
	senders.Go(func() error {
		tick := b.metronome()
		for number := 1; number <= b.part.Orders; number++ {
			if err := tick(ctx); err != nil {
				return err
			}
			if b.part.Before != nil {
				if err := b.part.Before(ctx, b, number); err != nil {
					return err
				}
			}
			senders.Go(func() error { return b.send(ctx, name(number), number) })
		}
		return nil
	})
	return senders.Wait()
}

// metronome returns a function that waits until the next order is due.
func (b *Bench) metronome() func(context.Context) error {
	every := b.pace.Of(b.part.Every)
	if every <= 0 {
		return func(context.Context) error { return nil }
	}
	const catchUp = 10 * time.Millisecond
	return ratelimit.New(ratelimit.Per(1, every), max(1, int(catchUp/every))).Wait
}

// Order sends one more order, and returns when it is answered.
func (b *Bench) Order(ctx context.Context, order string) error { return b.send(ctx, order, 0) }

// send sends an order, the number-th of the part, or another one if number is 0.
func (b *Bench) send(ctx context.Context, name string, number int) error {
	reply := Reply{Order: name, Number: number, At: b.Elapsed()}
	sent := time.Now()
	code, err := loopback.Call(ctx, b.client, http.MethodPost, b.lab.OrderURL()+"/orders/"+name, &reply.Answer)
	if err != nil {
		return fmt.Errorf("order %s: %w", name, err)
	}
	reply.Took, reply.Code = time.Since(sent), code
	b.note(func(m *Measured) { m.Orders = append(m.Orders, reply) })
	b.answered()
	return nil
}

// PayAgain has every customer pay again, one after another, at Payment itself.
func (b *Bench) PayAgain(ctx context.Context) error {
	for number := 1; number <= b.part.Orders; number++ {
		var receipt payment.Receipt
		_, err := loopback.Call(ctx, b.client, http.MethodPost, b.lab.PaymentURL()+"/payments/"+name(number), &receipt)
		if err != nil {
			return err
		}
		b.note(func(m *Measured) { m.PaidAgain = append(m.PaidAgain, receipt) })
	}
	return nil
}

// Ask asks Order what became of an order.
func (b *Bench) Ask(ctx context.Context, number int) error {
	var receipt payment.Receipt
	_, err := loopback.Call(ctx, b.client, http.MethodGet, b.lab.OrderURL()+"/orders/"+name(number)+"/payment", &receipt)
	b.note(func(m *Measured) { m.Asked = append(m.Asked, receipt) })
	return err
}

// Data2 measures Order's route that needs no Payment.
func (b *Bench) Data2(ctx context.Context) error {
	sent := time.Now()
	code, err := loopback.Call(ctx, b.client, http.MethodGet, b.lab.OrderURL()+"/data2", nil)
	b.note(func(m *Measured) { m.Data2 = Reply{Code: code, Took: time.Since(sent)} })
	return err
}

// Mode switches Payment.
func (b *Bench) Mode(ctx context.Context, mode payment.Mode) error {
	return b.admin(ctx, "/admin/mode/"+string(mode))
}

// Stats reads Payment's counters.
func (b *Bench) Stats(ctx context.Context) error {
	var stats payment.Stats
	_, err := loopback.Call(ctx, b.client, http.MethodGet, b.lab.PaymentURL()+"/admin/stats", &stats)
	b.note(func(m *Measured) { m.Payment = append(m.Payment, stats) })
	return err
}

// Circuit reads Order's breaker. Where there is none, its state is "none".
func (b *Bench) Circuit(ctx context.Context) error {
	var circuit order.Circuit
	code, err := loopback.Call(ctx, b.client, http.MethodGet, b.lab.OrderURL()+"/admin/breaker", &circuit)
	if code == http.StatusNotFound {
		circuit.State = "none"
	}
	b.note(func(m *Measured) { m.Circuit = append(m.Circuit, circuit) })
	return err
}

// Sleep waits for an unscaled duration.
func (b *Bench) Sleep(ctx context.Context, d time.Duration) error {
	return policy.Sleep(ctx, policy.SystemClock, b.pace.Of(d))
}

// Elapsed is the unscaled time since the part began.
func (b *Bench) Elapsed() time.Duration { return b.pace.Unscaled(time.Since(b.start)) }

func (b *Bench) admin(ctx context.Context, path string) error {
	_, err := loopback.Call(ctx, b.client, http.MethodPost, b.lab.PaymentURL()+path, nil)
	return err
}

func (b *Bench) note(edit func(*Measured)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	edit(&b.measured)
}

func (p Part) slow() time.Duration {
	if p.Slow == 0 {
		return 5 * time.Second
	}
	return p.Slow
}

// chargeOptions are those of the transport under Order's charges.
func (p Part) chargeOptions() []holdfasthttp.Option {
	switch {
	case p.Idempotent:
		return []holdfasthttp.Option{holdfasthttp.IdempotencyKey(order.Key)}
	case p.Reckless:
		return []holdfasthttp.Option{holdfasthttp.RetryAll()}
	default:
		return nil
	}
}

func name(number int) string { return fmt.Sprintf("order-%d", number) }
