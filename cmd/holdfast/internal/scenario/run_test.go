package scenario

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/order"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ignore() {}

// pass is a Judge for parts whose checks are not the point.
func pass([]Measured) []Check { return []Check{{OK: true}} }

func TestRun(t *testing.T) {
	var answered atomic.Int64
	s := Scenario{
		Name: "small", Shows: "something", Note: "a note",
		Parts: []Part{
			{Name: "paid", Orders: 3, Run: func(ctx context.Context, b *Bench) error {
				return inTurn(
					func() error { return b.Send(ctx) },
					func() error { return b.Order(ctx, "extra") },
				)
			}},
			{Name: "down", Mode: payment.Down, Orders: 2, Protection: timeoutAndBreaker},
		},
		Judge: pass,
	}
	got, err := Run(t.Context(), s, 10, func() { answered.Add(1) })
	if err != nil || !got.OK || got.Error != "" || got.Scenario != "small" || got.Shows != "something" || got.Note != "a note" || got.Speed != 10 || got.Runs != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if n := answered.Load(); n != 6 || s.Orders() != 5 {
		t.Errorf("answered %d of %d, want 6 of 5: an extra order counts too", n, s.Orders())
	}
	if len(got.Parts) != 2 {
		t.Fatalf("parts %+v", got.Parts)
	}
	paid, down := got.Parts[0], got.Parts[1]
	if paid.Part != "paid" || paid.Orders != 4 || paid.Answers[payment.Paid] != 4 || paid.Received != 4 || paid.Charges != 4 {
		t.Errorf("paid: %+v", paid)
	}
	if down.Part != "down" || down.Orders != 2 || down.Answers[order.Failed] != 2 || down.Received != 2 || down.Charges != 0 {
		t.Errorf("down: %+v", down)
	}
	if paid.Pipeline != "call" || down.Pipeline != timeoutAndBreaker(1).Compose().String() {
		t.Errorf("pipelines %q and %q, want those at full speed", paid.Pipeline, down.Pipeline)
	}
}

func TestRunThatCannotGoOn(t *testing.T) {
	broken := errors.New("broken")
	s := Scenario{
		Parts: []Part{
			{Run: func(context.Context, *Bench) error { return broken }},
			{Orders: 1, Mode: payment.Slow}, // does not wait for its slow payment
		},
		Judge: pass,
	}
	got, err := Run(t.Context(), s, 1, ignore)
	if err != nil || got.OK || got.Error != "broken" || len(got.Checks) != 0 {
		t.Errorf("%+v, %v, want the error in the result", got, err)
	}
	if got.TookMS > 2500 {
		t.Errorf("took %d ms", got.TookMS)
	}
}

func TestRunThatDoesNotShowIt(t *testing.T) {
	s := Scenario{
		Parts: []Part{{Orders: 1}},
		Judge: func([]Measured) []Check { return []Check{{OK: true}, {OK: false}} },
	}
	if got, err := Run(t.Context(), s, 1, ignore); err != nil || got.OK || got.Error != "" {
		t.Errorf("%+v, %v, want a result that is not OK", got, err)
	}
}

func TestInterrupt(t *testing.T) {
	for _, name := range []string{"naive-slow", "breaker-slow", "trap", "timeline", "slow-provider"} {
		t.Run(name, func(t *testing.T) {
			s, _ := Find(name)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			defer time.AfterFunc(150*time.Millisecond, cancel).Stop()
			start := time.Now()
			if _, err := Run(ctx, s, 1, ignore); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want the context's", err)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("ended after %v", took)
			}
		})
	}
}

// The rate of a stream of orders holds from the second order on, whatever the machine
// does: a machine that is late makes it slower, never faster.
func TestSendKeepsTheRate(t *testing.T) {
	b := bench(t, Part{Orders: 10, Every: 200 * time.Millisecond}, 10)
	start := time.Now()
	if err := b.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 9*20*time.Millisecond {
		t.Errorf("10 orders, one every 20 ms, in %v", took)
	}
	if n := len(b.measured.Orders); n != 10 {
		t.Errorf("%d answers, want 10", n)
	}
}

func TestSendStopsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	b := bench(t, Part{Orders: 10, Before: func(_ context.Context, _ *Bench, number int) error {
		if number == 3 {
			return broken
		}
		return nil
	}}, 1)
	if err := b.Send(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error %v, want broken", err)
	}
}

func TestIdempotentPart(t *testing.T) {
	b := bench(t, Part{Orders: 2, Idempotent: true}, 1)
	if err := b.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.PayAgain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.measured.PaidAgain; len(got) != 4 || got[0].Repeated || !got[2].Repeated {
		t.Errorf("%+v, want the third answer repeated", got)
	}
}

func TestAsides(t *testing.T) {
	b := bench(t, Part{Orders: 1}, 1)
	err := inTurn(
		func() error { return b.Ask(t.Context(), 1) },
		func() error { return b.Send(t.Context()) },
		func() error { return b.Ask(t.Context(), 1) },
		func() error { return b.Data2(t.Context()) },
		func() error { return b.Circuit(t.Context()) },
	)
	if err != nil {
		t.Fatal(err)
	}
	m := b.measured
	if m.Asked[0].Status != payment.NotPaid || m.Asked[1].Status != payment.Paid {
		t.Errorf("asked: %+v", m.Asked)
	}
	if m.Data2.Code != http.StatusOK || m.State(0) != "none" || m.State(1) != "not read" {
		t.Errorf("data2 %+v, circuit %+v", m.Data2, m.Circuit)
	}
}

// What is shown at full speed is what Order is really made of.
func TestPipelineIsOrders(t *testing.T) {
	for _, s := range All() {
		for _, p := range s.Parts {
			if got, want := p.Pipeline(), bench(t, p, 1).lab.Order.Pipeline(); got != want {
				t.Errorf("%s %s: %s, but Order calls through %s", s.Name, p.Name, got, want)
			}
		}
	}
	p := Part{Protection: timeoutAndBreaker}
	if got, want := p.Pipeline(), `breaker("payment") → timeout(1s) → call`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAsking(t *testing.T) {
	tests := []struct {
		part Part
		want string
	}{
		{Part{}, "call"},
		{Part{Asks: true}, "call"},
		{Part{Protection: timeoutOnly}, `retry(attempts=3) → breaker("payment-status") → timeout(1s) → call`},
		{Part{Protection: timeoutOnly, Asks: true}, "timeout(1s) → call"},
	}
	for _, tt := range tests {
		if got := tt.part.asking(1).Compose().String(); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.part, got, tt.want)
		}
	}
}

// bench opens a bench for a part that the test runs by hand.
func bench(t *testing.T, part Part, pace Pace) *Bench {
	t.Helper()
	b, err := open(pace, part, ignore)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

func TestEveryScenarioIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		if s.Name == "" || s.Shows == "" || len(s.Parts) == 0 || s.Judge == nil || seen[s.Name] {
			t.Errorf("%q is incomplete, or there twice", s.Name)
		}
		seen[s.Name] = true
		for _, p := range s.Parts {
			if p.Orders == 0 || (p.Name == "") != (len(s.Parts) == 1) {
				t.Errorf("%s: part %q without orders, or without a name", s.Name, p.Name)
			}
		}
	}
	if _, ok := Find("nothing"); ok {
		t.Error("found nothing")
	}
}

// No composition of the lab is one that Advice warns of, except where it is the point.
func TestProtectionsAreAsAdvised(t *testing.T) {
	pace := Pace(1)
	for _, layers := range []protection{timeoutOnly, timeoutAndBreaker, hairTrigger, withBulkhead(5), retryAndBreaker, threeInARow, everything, asking} {
		if p := layers(pace).Compose(); len(p.Advice()) > 0 {
			t.Errorf("%v: %v", p, p.Advice())
		}
	}
	if p := retryOnly(pace).Compose(); len(p.Advice()) == 0 {
		t.Errorf("%v: no advice against the storm", p)
	}
}

func TestDisturbed(t *testing.T) {
	tests := []struct {
		result Result
		want   bool
	}{
		{Result{OK: true, StalledMS: 100}, false},
		{Result{OK: false, StalledMS: 9}, false},
		{Result{OK: false, StalledMS: 10}, true},
	}
	for _, tt := range tests {
		if got := tt.result.Disturbed(); got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.result, got, tt.want)
		}
	}
}

func TestStallWatch(t *testing.T) {
	w := watchStalls()
	time.Sleep(10 * time.Millisecond)
	if late := w.stop(); late < 0 || late > time.Minute {
		t.Errorf("late by %v", late)
	}
}

func TestPace(t *testing.T) {
	if got := Pace(4).Of(time.Second); got != 250*time.Millisecond {
		t.Errorf("Of: %v", got)
	}
	if got := Pace(4).Unscaled(250 * time.Millisecond); got != time.Second {
		t.Errorf("Unscaled: %v", got)
	}
	if got := Pace(0.5).Of(time.Second); got != 2*time.Second {
		t.Errorf("Of, slower: %v", got)
	}
}

func TestErrorNamesTheOrder(t *testing.T) {
	b, err := open(1, Part{Orders: 1}, ignore)
	if err != nil {
		t.Fatal(err)
	}
	b.close()
	if err := b.Send(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "order order-1: ") {
		t.Errorf("error %v, want one that names the order", err)
	}
}
