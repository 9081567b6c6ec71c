package scenario

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/order"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/payment"
)

// The measurements below are invented, and show what they must.

func paidOrders(n int, took time.Duration) []Reply {
	return replies(n, Reply{Took: took, Code: http.StatusOK, Answer: order.Answer{Status: payment.Paid, Calls: 1}})
}

func failedOrders(n int) []Reply {
	return replies(n, Reply{
		Took: time.Millisecond, Code: http.StatusBadGateway, Answer: order.Answer{Status: order.Failed, Calls: 1},
	})
}

func timedOut(n int) []Reply {
	return replies(n, Reply{
		Took: time.Second, Code: http.StatusAccepted, Answer: order.Answer{Status: order.Pending, Calls: 1},
	})
}

func refusedOrders(n int) []Reply {
	return replies(n, Reply{
		Took: time.Millisecond, Code: http.StatusAccepted, Answer: order.Answer{Status: order.Pending},
	})
}

func replies(n int, r Reply) []Reply { return slices.Repeat([]Reply{r}, n) }

// numbered puts replies together, as answered one after another.
func numbered(groups ...[]Reply) []Reply {
	all := slices.Concat(groups...)
	for i := range all {
		all[i].Number, all[i].Order = i+1, name(i+1)
	}
	return all
}

// also adds the reply to an order that is none of the part's.
func also(all []Reply, order string, r []Reply) []Reply {
	r[0].Order = order
	return append(all, r...)
}

func received(n, charges int) []payment.Stats {
	return []payment.Stats{{Received: n, Charges: charges}}
}

func states(states ...string) []order.Circuit {
	var circuits []order.Circuit
	for _, s := range states {
		circuits = append(circuits, order.Circuit{State: s})
	}
	return circuits
}

func good() map[string][]Measured {
	one := func(m Measured) []Measured {
		m.Pace = 1
		return []Measured{m}
	}
	all := map[string][]Measured{
		"healthy": one(Measured{Orders: numbered(paidOrders(10, time.Millisecond))}),
		"naive-slow": one(Measured{
			Orders: numbered(paidOrders(20, 5*time.Second)), Payment: received(20, 20),
			Order: order.Stats{MaxWaiting: 20}, Data2: Reply{Code: http.StatusOK},
		}),
		"naive-down":     one(Measured{Orders: numbered(failedOrders(20)), Payment: received(20, 0)}),
		"timeout-slow":   one(Measured{Orders: numbered(timedOut(20)), Payment: received(20, 20)}),
		"breaker-slow":   one(Measured{Orders: numbered(timedOut(9), refusedOrders(11)), Payment: received(9, 9), Circuit: states("open")}),
		"breaker-down":   one(Measured{Orders: numbered(failedOrders(5), refusedOrders(15)), Payment: received(5, 0)}),
		"burst":          one(Measured{Orders: numbered(timedOut(20)), Payment: received(20, 20)}),
		"bulkhead-burst": one(Measured{Orders: numbered(timedOut(5), refusedOrders(15)), Payment: received(5, 5)}),
		"one-failure":    one(Measured{Orders: numbered(failedOrders(1), refusedOrders(5)), Payment: received(1, 0), Circuit: states("open")}),
		"recover":        one(recovered()),
		"trap":           {trapped("without idempotency", 29), trapped("with idempotency", 20)},
		"retry-storm": {
			{Part: "no breaker", Pace: 1, Payment: received(60, 0)},
			{Part: "breaker", Pace: 1, Payment: received(7, 0)},
		},
		"http-retry": {
			{Part: "GET", Pace: 1, Payment: []payment.Stats{{Asked: 139}}, Asked: slices.Repeat([]payment.Receipt{{Status: payment.NotPaid}}, 97)},
			{Part: "POST", Pace: 1, Orders: numbered(paidOrders(70, 0), failedOrders(15), timedOut(15)), Payment: received(100, 85)},
			{Part: "key", Pace: 1, Orders: numbered(paidOrders(97, 0), failedOrders(3)), Payment: received(139, 98)},
			{Part: "all", Pace: 1, Orders: numbered(paidOrders(97, 0), failedOrders(3)), Payment: received(139, 118)},
		},
		"timeline": one(timelined()),
		"slow-provider": {
			{Part: "no protection", Pace: 1, MaxInFlight: 1000},
			{Part: "timeout", Pace: 1, MaxInFlight: 200},
			{Part: "everything", Pace: 1, MaxInFlight: 20, Orders: numbered(timedOut(24), refusedOrders(976))},
		},
		"thousand": one(Measured{Orders: thousandOrders()}),
		"check":    {examined(5, "open", "closed"), examined(10, "none", "none")},
	}
	return all
}

func recovered() Measured {
	at := time.Now()
	m := Measured{Orders: numbered(failedOrders(5), refusedOrders(5))}
	m.Orders = also(m.Orders, "early", refusedOrders(1))
	m.Orders = also(m.Orders, "probe", paidOrders(1, 0))
	m.Orders = also(m.Orders, "next", paidOrders(1, 0))
	m.Circuit = states("closed")
	m.Circuit[0].Transitions = []order.Transition{
		{At: at, From: "closed", To: "open"},
		{At: at.Add(5 * time.Second), From: "open", To: "half-open"},
		{At: at.Add(5100 * time.Millisecond), From: "half-open", To: "closed"},
	}
	return m
}

func trapped(part string, charges int) Measured {
	return Measured{
		Part: part, Pace: 1,
		Orders:    numbered(timedOut(9), refusedOrders(11)),
		Payment:   []payment.Stats{{Received: 9, Charges: 9}, {Received: 29, Charges: charges}},
		Asked:     []payment.Receipt{{Status: payment.NotPaid}, {Status: payment.Paid}},
		PaidAgain: []payment.Receipt{{Status: payment.Paid, Repeated: true}},
	}
}

func timelined() Measured {
	var m Measured
	for _, line := range story {
		m.Orders = append(m.Orders, map[string][]Reply{
			failed: failedOrders(1), passed: paidOrders(1, 0), held: refusedOrders(1),
		}[line.call]...)
		m.Circuit = append(m.Circuit, order.Circuit{State: line.state})
	}
	m.Orders = numbered(m.Orders)
	return m
}

func thousandOrders() []Reply {
	fallback := refusedOrders(333)
	for i := range fallback {
		fallback[i].Answer.Fallback = true
		if i < 10 {
			fallback[i].Answer.Calls = 1
		}
	}
	return numbered(paidOrders(333, 0), fallback, paidOrders(334, 0))
}

func examined(n int, before, after string) Measured {
	m := Measured{Part: "naive", Pace: 1, Payment: received(n, 0), Circuit: states(before, after)}
	m.Orders = also(numbered(failedOrders(n), refusedOrders(10-n)), "probe", paidOrders(1, 0))
	return m
}

func judge(t *testing.T, name string, parts []Measured) []Check {
	t.Helper()
	s, ok := Find(name)
	if !ok {
		t.Fatalf("no scenario %q", name)
	}
	return s.Judge(parts)
}

func failures(checks []Check) []string {
	var names []string
	for _, c := range checks {
		if !c.OK {
			names = append(names, c.Name)
		}
	}
	return names
}

func TestJudgesPassWhatShowsWhatItMust(t *testing.T) {
	measured := good()
	if got := slices.Sorted(maps.Keys(measured)); !slices.Equal(got, slices.Sorted(slices.Values(Names()))) {
		t.Fatalf("measurements for %v, scenarios are %v", got, Names())
	}
	for name, parts := range measured {
		if checks := judge(t, name, parts); !allOK(checks) {
			t.Errorf("%s: %+v", name, checks)
		}
	}
}

// A check that cannot fail shows nothing. Each spoils one measurement and names the
// checks that have to notice.
func TestEveryCheckCanFail(t *testing.T) {
	const onceRefused = "refused, answered at once"
	const toPayment = "received by Payment"
	spoil := []struct {
		scenario string
		spoil    func(parts []Measured)
		want     []string
	}{
		{"healthy", func(p []Measured) { p[0].Orders[3].Answer.Status = order.Pending }, []string{"orders paid"}},
		{"naive-slow", func(p []Measured) { p[0].Orders[7].Took = 7 * time.Second }, []string{"each order waited"}},
		{"naive-slow", func(p []Measured) { p[0].Orders[7].Took = 0 }, []string{"each order waited"}},
		{"naive-slow", func(p []Measured) { p[0].Order.MaxWaiting = 19 }, []string{"waiting at the same time"}},
		{"naive-slow", func(p []Measured) { p[0].Payment[0].Received = 19 }, []string{toPayment}},
		{"naive-slow", func(p []Measured) { p[0].Data2.Code = 503 }, []string{"/data2 meanwhile"}},
		{"naive-down", func(p []Measured) { p[0].Orders[0].Answer.Status = payment.Paid }, []string{"orders failed"}},
		{"naive-down", func(p []Measured) { p[0].Payment[0].Received = 5 }, []string{toPayment}},
		{"timeout-slow", func(p []Measured) { p[0].Orders[19].Took = 5 * time.Second }, []string{"each order waited"}},
		{"timeout-slow", func(p []Measured) { p[0].Pace = 2 }, []string{"each order waited"}},
		{"timeout-slow", func(p []Measured) { p[0].Payment[0].Received = 21 }, []string{toPayment}},
		{
			"breaker-slow",
			func(p []Measured) { p[0].Orders = numbered(timedOut(20)); p[0].Payment[0].Received = 20 },
			[]string{toPayment},
		},
		{"breaker-slow", func(p []Measured) { p[0].Payment[0].Received = 10 }, []string{onceRefused}},
		{"breaker-slow", func(p []Measured) { p[0].Orders[19].Took = atOnce }, []string{onceRefused}},
		{"breaker-slow", func(p []Measured) { p[0].Pace = 100 }, nil}, // the 50 ms are real
		{"breaker-slow", func(p []Measured) { p[0].Circuit[0].State = "closed" }, []string{"circuit"}},
		{"breaker-down", func(p []Measured) { p[0].Payment[0].Received = 6 }, []string{toPayment}},
		{"breaker-down", func(p []Measured) { p[0].Orders[19].Answer.Calls = 1 }, []string{onceRefused}},
		{"burst", func(p []Measured) { p[0].Payment[0].Received = 5 }, []string{toPayment}},
		{"bulkhead-burst", func(p []Measured) { p[0].Payment[0].Received = 20 }, []string{toPayment}},
		{"bulkhead-burst", func(p []Measured) { p[0].Orders[19].Took = time.Second }, []string{onceRefused}},
		{"one-failure", func(p []Measured) { p[0].Payment[0].Received = 6 }, []string{toPayment}},
		{"one-failure", func(p []Measured) { p[0].Orders[5].Answer.Calls = 1 }, []string{onceRefused}},
		{"one-failure", func(p []Measured) { p[0].Circuit = nil }, []string{"circuit"}},
		{"recover", func(p []Measured) { p[0].Orders[10].Answer.Status = payment.Paid }, []string{"one order at once"}},
		{"recover", func(p []Measured) { p[0].Orders[11].Answer.Status = order.Pending }, []string{"one after 5 s"}},
		{"recover", func(p []Measured) { p[0].Orders = p[0].Orders[:12] }, []string{"one more"}},
		{
			"recover",
			func(p []Measured) { p[0].Circuit[0].Transitions = p[0].Circuit[0].Transitions[:1] },
			[]string{"circuit", "half-open after"},
		},
		{"recover", func(p []Measured) { p[0].Pace = 1.2 }, []string{"half-open after"}},
		{"trap", func(p []Measured) { p[0].Asked[0].Status = payment.Paid }, []string{"order-7, as soon as all are answered"}},
		{"trap", func(p []Measured) { p[0].Asked[1].Status = payment.NotPaid }, []string{"order-7, 6 s later"}},
		{"trap", func(p []Measured) { p[0].Payment[1].Charges = 20 }, []string{"without idempotency: charges for 20 orders"}},
		{"trap", func(p []Measured) { p[1].Payment[1].Charges = 21 }, []string{"with idempotency: charges for 20 orders"}},
		{"retry-storm", func(p []Measured) { p[0].Payment[0].Received = 59 }, []string{"no breaker: " + toPayment}},
		{"retry-storm", func(p []Measured) { p[1].Payment[0].Received = 8 }, []string{"breaker: " + toPayment}},
		{"http-retry", func(p []Measured) { p[0].Payment[0].Asked = 100 }, []string{"GET: received by Payment, of 100 questions"}},
		{"http-retry", func(p []Measured) { p[0].Asked[3].Status, p[0].Asked = "", p[0].Asked[:94] }, []string{"GET: answered"}},
		{"http-retry", func(p []Measured) { p[1].Payment[0].Received = 101 }, []string{"POST: " + toPayment + ", of 100 orders"}},
		{"http-retry", func(p []Measured) { p[1].Orders = numbered(paidOrders(97, 0), failedOrders(3)) }, []string{"POST: paid", "POST: charges, beside PAID and PENDING"}},
		{"http-retry", func(p []Measured) { p[1].Payment[0].Charges = 70 }, []string{"POST: charges", "POST: charges, beside PAID and PENDING"}},
		{"http-retry", func(p []Measured) { p[1].Orders[99].Answer.Status = order.Failed }, []string{"POST: charges, beside PAID and PENDING"}},
		{"http-retry", func(p []Measured) { p[2].Payment[0].Received = 100 }, []string{"key: " + toPayment + ", of 100 orders"}},
		{"http-retry", func(p []Measured) { p[2].Orders = p[2].Orders[4:] }, []string{"key: paid"}},
		{"http-retry", func(p []Measured) { p[2].Payment[0].Charges = 101 }, []string{"key: charges"}},
		{"http-retry", func(p []Measured) { p[2].Payment[0].Charges = 96 }, []string{"key: charges"}},
		{"http-retry", func(p []Measured) { p[3].Payment[0].Received = 100 }, []string{"all: " + toPayment + ", of 100 orders"}},
		{"http-retry", func(p []Measured) { p[3].Payment[0].Charges = 100 }, []string{"all: charges"}},
		{
			"timeline", func(p []Measured) { p[0].Orders[0].Answer.Calls = 0 },
			[]string{"request  1 at    0 ms", "received while Payment was down"},
		},
		{"slow-provider", func(p []Measured) { p[0].MaxInFlight = 899 }, []string{"no protection: calls in flight"}},
		{"slow-provider", func(p []Measured) { p[1].MaxInFlight = 301 }, []string{"timeout: calls in flight"}},
		{"slow-provider", func(p []Measured) { p[2].MaxInFlight = 21 }, []string{"everything: calls in flight"}},
		{
			"slow-provider", func(p []Measured) { p[2].Orders = numbered(timedOut(51), refusedOrders(949)) },
			[]string{"everything: answered in < 50 ms"},
		},
		{"thousand", func(p []Measured) { p[0].Orders[0].Answer.Status = order.Failed }, []string{"PAID + fallbacks"}},
		{"thousand", func(p []Measured) {
			for i := range 34 {
				p[0].Orders[firstDown-1+i].Answer.Calls = 1
			}
		}, []string{"kept from Payment, of the 333"}},
		{"check", func(p []Measured) { p[0].Payment[0].Received = 7 }, []string{"received of the first 10"}},
		{"check", func(p []Measured) { p[0].Orders[9].Took = atOnce }, []string{"slowest of the last 4"}},
		{"check", func(p []Measured) { p[0].Circuit[0].State = "half-open" }, []string{"circuit"}},
		{"check", func(p []Measured) { p[0].Orders[10].Answer.Status = order.Pending }, []string{"first order after the wait"}},
		{"check", func(p []Measured) { p[0].Circuit[1].State = "open" }, []string{"circuit after it"}},
		{"check", func(p []Measured) { p[1].Payment[0].Received = 5 }, []string{"naive: received of the first 10"}},
		{"check", func(p []Measured) { p[1].Orders[9].Took = atOnce }, []string{"naive: slowest of the last 4"}},
		{"check", func(p []Measured) { p[1].Circuit[0].State = "open" }, []string{"naive: circuit"}},
		{"check", func(p []Measured) { p[1].Orders[10].Answer.Status = order.Failed }, []string{"naive: first order after the wait"}},
		{"check", func(p []Measured) { p[1].Circuit[1].State = "closed" }, []string{"naive: circuit after it"}},
	}
	seen := map[string]bool{}
	for _, tt := range spoil {
		parts := good()[tt.scenario]
		tt.spoil(parts)
		got := failures(judge(t, tt.scenario, parts))
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: failed %q, want %q", tt.scenario, got, tt.want)
		}
		for _, name := range got {
			seen[tt.scenario+" "+name] = true
		}
	}
	for scenario, parts := range good() {
		for _, c := range judge(t, scenario, parts) {
			if c.Expected != "" && !seen[scenario+" "+c.Name] && !strings.HasPrefix(c.Name, "request") {
				t.Errorf("%s: nothing makes the check %q fail", scenario, c.Name)
			}
		}
	}
}

func TestEveryLineOfTheTimelineCanFail(t *testing.T) {
	for i := range story {
		parts := good()["timeline"]
		parts[0].Circuit[i].State = "half-open"
		if got := failures(judge(t, "timeline", parts)); len(got) != 1 {
			t.Errorf("line %d with another state: failed %q, want one line", i+1, got)
		}
	}
	for i := range story {
		parts := good()["timeline"]
		parts[0].Orders = parts[0].Orders[:i]
		if got := failures(judge(t, "timeline", parts)); len(got) < len(story)-i {
			t.Errorf("only %d answers: failed %q", i, got)
		}
	}
}

func TestExamSaysWhatTheNaiveServiceMustFail(t *testing.T) {
	var got []string
	for _, c := range judge(t, "check", good()["check"])[5:] {
		got = append(got, c.Expected)
	}
	want := []string{"must fail: ≤ 6", "must pass: < 50 ms", "must fail: open", "must pass: PAID", "must fail: closed"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAnswersAtOnceAreCounted(t *testing.T) {
	m := Measured{Pace: 1, Orders: numbered(timedOut(9), refusedOrders(11))}
	if got := summary(Part{}, m).AnsweredAtOnce; got != 11 {
		t.Errorf("%d, want 11", got)
	}
}

func TestNoChecksAreNotOK(t *testing.T) {
	if allOK(nil) {
		t.Error("a scenario that checked nothing is OK")
	}
}
