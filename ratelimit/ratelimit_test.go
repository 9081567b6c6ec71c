package ratelimit_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// pass runs a call under l, and returns the error.
func pass(ctx context.Context, l *ratelimit.Limiter) error {
	_, err := l.Wrap(policy.Invoke)(ctx, policytest.Script(policytest.Return(1)))
	return err
}

func TestAtOnce(t *testing.T) {
	type step struct {
		at      time.Duration
		retryIn time.Duration // 0: admitted
	}
	tests := []struct {
		name  string
		rate  ratelimit.Rate
		burst int
		steps []step
	}{
		{
			"BEHAVIOUR 61: one per 100ms", ratelimit.Per(10, time.Second), 1,
			[]step{{0, 0}, {100 * ms, 0}, {150 * ms, 50 * ms}, {150 * ms, 50 * ms}, {200 * ms, 0}, {250 * ms, 50 * ms}},
		},
		{
			"BEHAVIOUR 62: burst after an hour", ratelimit.Per(10, time.Second), 3,
			[]step{{time.Hour, 0}, {time.Hour, 0}, {time.Hour, 0}, {time.Hour, 100 * ms}, {time.Hour + 100*ms, 0}},
		},
		{
			"no edge", ratelimit.Per(2, time.Second), 2,
			[]step{{999 * ms, 0}, {999 * ms, 0}, {1000 * ms, 499 * ms}, {1001 * ms, 498 * ms}, {1499 * ms, 0}},
		},
		{
			"one a day", ratelimit.Per(1, 24*time.Hour), 1,
			[]step{{0, 0}, {time.Hour, 23 * time.Hour}, {24*time.Hour - 1, 1}, {24 * time.Hour, 0}},
		},
		{
			"a third", ratelimit.Per(3, time.Second), 1,
			[]step{{0, 0}, {0, 333_333_334}, {333_333_333, 1}, {333_333_334, 0}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for hand, try := range map[string]func(l *ratelimit.Limiter) error{
				"pipeline": func(l *ratelimit.Limiter) error { return pass(t.Context(), l) },
				"Allow": func(l *ratelimit.Limiter) error {
					if l.Allow() {
						return nil
					}
					return ratelimit.ErrExceeded
				},
			} {
				clock := policytest.NewClock(time.Unix(0, 0))
				l := ratelimit.New(tt.rate, tt.burst, ratelimit.Clock(clock))
				refused := uint64(0)
				for _, s := range tt.steps {
					clock.Advance(s.at - clock.Elapsed())
					clock.Set(time.Unix(12345, 0)) // a step of the wall clock is not time
					err := try(l)
					if (s.retryIn > 0) != errors.Is(err, ratelimit.ErrExceeded) {
						t.Fatalf("%s: error %v at +%v, want retry in %v", hand, err, s.at, s.retryIn)
					}
					if got, _ := policy.RetryAfter(err); hand == "pipeline" && got != s.retryIn {
						t.Errorf("retry in %v at +%v, want %v", got, s.at, s.retryIn)
					}
					if s.retryIn > 0 {
						refused++
					}
				}
				if got := l.Stats().Rejected; got != refused {
					t.Errorf("%s: %d rejected, want %d", hand, got, refused)
				}
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	clock := policytest.NewClock(time.Unix(7, 0))
	l := ratelimit.New(ratelimit.Per(10, time.Second), 1, ratelimit.Name("payments"), ratelimit.Clock(clock))
	recorder := policytest.Record(l)
	if err := pass(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	clock.Advance(40 * ms)
	err := pass(t.Context(), l)
	exceeded, ok := errors.AsType[*ratelimit.ExceededError](err)
	if want := (ratelimit.ExceededError{Name: "payments", RetryIn: 60 * ms}); !ok || *exceeded != want {
		t.Fatalf("error %v, want %+v", err, want)
	}
	if !policy.Rejected(err) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want a refusal and no deadline", err)
	}
	if want := `ratelimit "payments": rate exceeded, retry in 60ms`; err.Error() != want {
		t.Errorf("message %q, want %q", err, want)
	}
	l.Allow()
	events := recorder.Events()
	if len(events) != 2 {
		t.Fatalf("events %v, want both refusals", events)
	}
	for _, e := range events {
		if e.Kind != policy.RateLimitRejected || e.Policy != "ratelimit" || e.Name != "payments" ||
			!errors.Is(e.Err, ratelimit.ErrExceeded) || e.Reason == "" || !e.Time.Equal(time.Unix(7, 0).Add(40*ms)) {
			t.Errorf("event %+v lacks a field", e)
		}
	}
}

// shifted is a clock with another start.
type shifted struct {
	*policytest.Clock
	by time.Duration
}

func (c *shifted) Elapsed() time.Duration { return c.Clock.Elapsed() + c.by }

func TestWhereverTheClockStarts(t *testing.T) {
	for _, start := range []time.Duration{math.MinInt64, -time.Hour, 0, time.Hour, math.MaxInt64 - time.Second} {
		clock := &shifted{Clock: policytest.NewClock(time.Unix(0, 0)), by: start}
		l := ratelimit.New(ratelimit.Per(10, time.Second), 1, ratelimit.Clock(clock))
		for range 5 {
			if !l.Allow() || l.Allow() {
				t.Errorf("clock that starts at %v: not one token in 100ms", start)
			}
			clock.Advance(100 * ms)
		}
	}
}

func TestDoneContextBeatsAToken(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	l := ratelimit.New(ratelimit.Per(1, time.Hour), 1)
	for _, err := range []error{l.Wait(ctx), pass(ctx, l)} {
		if !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the caller's end and its cause", err)
		}
	}
	if !l.Allow() {
		t.Error("the token is gone")
	}
}

func TestBadSettings(t *testing.T) {
	per := ratelimit.Per
	second := per(1, time.Second)
	tests := []struct {
		name  string
		rate  ratelimit.Rate
		burst int
		opts  []ratelimit.Option
		want  string // "" is none
	}{
		{"zero rate", ratelimit.Rate{}, 1, nil, `ratelimit "ratelimit": New(Rate{}, 1): must be a rate made with Per`},
		{"no calls", per(0, time.Second), 1, nil, `ratelimit "ratelimit": Per(0, 1s): must be at least 1 call in more than 0s`},
		{"negative calls", per(-1, time.Second), 1, nil, `ratelimit "ratelimit": Per(-1, 1s): must be at least 1 call in more than 0s`},
		{"no period", per(1, 0), 1, nil, `ratelimit "ratelimit": Per(1, 0s): must be at least 1 call in more than 0s`},
		{"negative period", per(1, -1), 1, nil, `ratelimit "ratelimit": Per(1, -1ns): must be at least 1 call in more than 0s`},
		{
			"least of all", per(math.MinInt, math.MinInt64), math.MinInt,
			[]ratelimit.Option{ratelimit.MaxWait(math.MinInt64)},
			`must be at least 1; MaxWait(`,
		},
		{"burst", second, 0, nil, `ratelimit "ratelimit": New(1/1s, 0): must be at least 1`},
		{"negative burst", second, -1, nil, `ratelimit "ratelimit": New(1/1s, -1): must be at least 1`},
		{"nil option", second, 1, []ratelimit.Option{nil}, `ratelimit "ratelimit": Option(nil): must not be nil`},
		{"nil clock", second, 1, []ratelimit.Option{ratelimit.Clock(nil)}, `ratelimit "ratelimit": Clock(nil): must not be nil`},
		{"empty name", second, 1, []ratelimit.Option{ratelimit.Name("")}, `ratelimit "": Name(""): must not be empty`},
		{
			"all faults at once", per(0, time.Second), -2,
			[]ratelimit.Option{ratelimit.MaxWait(-1), ratelimit.Name("payments"), ratelimit.Clock(nil)},
			`ratelimit "payments": Clock(nil): must not be nil; Per(0, 1s): must be at least 1 call in more than 0s; ` +
				`New(0/1s, -2): must be at least 1; MaxWait(-1ns): must be at least 0`,
		},
		{"largest", per(math.MaxInt, math.MaxInt64), math.MaxInt, []ratelimit.Option{ratelimit.MaxWait(math.MaxInt64)}, ""},
		{"smallest", per(1, 1), 1, []ratelimit.Option{ratelimit.MaxWait(0)}, ""},
		{"the last wins", second, 1, []ratelimit.Option{ratelimit.MaxWait(-1), ratelimit.MaxWait(1)}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			matches := func(got string) bool { return (got == "") == (tt.want == "") && strings.Contains(got, tt.want) }
			got := ""
			if _, err := ratelimit.Build(tt.rate, tt.burst, tt.opts...); err != nil {
				got = err.Error()
			}
			if !matches(got) {
				t.Errorf("Build: %q, want %q", got, tt.want)
			}
			defer func() {
				if got, _ := recover().(string); !matches(got) {
					t.Errorf("New: panic %q, want %q", got, tt.want)
				}
			}()
			ratelimit.New(tt.rate, tt.burst, tt.opts...)
		})
	}
}

// Every bad value is named, whatever else is bad, and all of them are told
// at once.
func TestBadSettingsTogether(t *testing.T) {
	type setting[T any] struct {
		value T
		names string // "" is good
	}
	rates := []setting[ratelimit.Rate]{
		{ratelimit.Per(1, 1), ""},
		{ratelimit.Rate{}, "New(Rate{}"},
		{ratelimit.Per(0, 1), "Per(0"},
		{ratelimit.Per(math.MinInt, 1), "Per(-"},
		{ratelimit.Per(1, math.MinInt64), "Per(1, -"},
	}
	bursts := []setting[int]{{1, ""}, {0, ", 0)"}, {math.MinInt, ", -9223372036854775808)"}}
	waits := []setting[time.Duration]{{0, ""}, {-1, "MaxWait(-1ns)"}, {math.MinInt64, "MaxWait(-"}}
	for _, r := range rates {
		for _, b := range bursts {
			for _, w := range waits {
				_, err := ratelimit.Build(r.value, b.value, ratelimit.MaxWait(w.value))
				if good := r.names+b.names+w.names == ""; good != (err == nil) {
					t.Errorf("%v, %d, %v: error %v", r.value, b.value, w.value, err)
				}
				for _, name := range []string{r.names, b.names, w.names} {
					if name != "" && !strings.Contains(err.Error(), name) {
						t.Errorf("error %v, want one that names %s", err, name)
					}
				}
			}
		}
	}
}

func TestDescribe(t *testing.T) {
	l := ratelimit.New(ratelimit.Per(100, time.Second), 20, ratelimit.Name("payments"), ratelimit.MaxWait(time.Minute))
	d := l.Describe()
	var params []string
	for _, p := range d.Params {
		params = append(params, p.String())
	}
	want := "rate=100/1s burst=20 max_wait=1m0s"
	if got := strings.Join(params, " "); d.Kind != "ratelimit" || d.Name != "payments" || l.Name() != "payments" || got != want {
		t.Errorf("described as %+v, want %s", d, want)
	}
	if s := l.Stats(); s.Rate != ratelimit.Per(100, time.Second) || s.Burst != 20 || s.Available != 20 {
		t.Errorf("stats %+v", s)
	}
}

func TestATokenAllocatesNothing(t *testing.T) {
	l := plenty()
	handler := l.Wrap(policy.Invoke)
	value := new(int)
	call := policy.CallFunc(func(context.Context) (any, error) { return value, nil })
	for name, f := range map[string]func(){
		"call":  func() { handler(t.Context(), call) },
		"Allow": func() { l.Allow() },
		"Wait":  func() { l.Wait(t.Context()) },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

func TestConformance(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return ratelimit.New(ratelimit.Per(1000, time.Second), 1000) })
	policytest.Run(t, func() policy.Policy {
		return ratelimit.New(ratelimit.Per(10, time.Second), 1, ratelimit.MaxWait(365*24*time.Hour))
	})
}
