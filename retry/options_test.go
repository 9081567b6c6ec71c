package retry_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/retry"
)

func TestBadSettings(t *testing.T) {
	const second = time.Second
	tests := []struct {
		opts []retry.Option
		want string // after the retry's name
	}{
		{[]retry.Option{nil}, `Option(nil): must not be nil`},
		{[]retry.Option{retry.Attempts(4), nil, retry.Constant(0)}, `Option(nil): must not be nil`},
		{[]retry.Option{retry.If(nil)}, `If(nil): must not be nil`},
		{[]retry.Option{retry.OnRetry(nil)}, `OnRetry(nil): must not be nil`},
		{[]retry.Option{retry.Backoff(nil)}, `Backoff(nil): must not be nil`},
		{[]retry.Option{retry.Clock(nil)}, `Clock(nil): must not be nil`},
		{[]retry.Option{retry.Attempts(0)}, `Attempts(0): must be at least 1`},
		{[]retry.Option{retry.Attempts(-1)}, `Attempts(-1): must be at least 1`},
		{[]retry.Option{retry.Attempts(math.MinInt)}, fmt.Sprintf(`Attempts(%d): must be at least 1`, math.MinInt)},
		{[]retry.Option{retry.Attempts(3), retry.Attempts(0)}, `Attempts(0): must be at least 1`},
		{[]retry.Option{retry.MaxElapsed(0)}, `MaxElapsed(0s): must be greater than 0`},
		{[]retry.Option{retry.MaxElapsed(-1)}, `MaxElapsed(-1ns): must be greater than 0`},
		{[]retry.Option{retry.MaxElapsed(math.MinInt64)}, `MaxElapsed(-2562047h47m16.854775808s): must be greater than 0`},
		{[]retry.Option{retry.Exponential(0, second)}, `Exponential(0s, 1s): base must be greater than 0`},
		{[]retry.Option{retry.Exponential(-1, second)}, `Exponential(-1ns, 1s): base must be greater than 0`},
		{[]retry.Option{retry.Exponential(0, 0)}, `Exponential(0s, 0s): base must be greater than 0`},
		{[]retry.Option{retry.Exponential(second, 0)}, `Exponential(1s, 0s): max must be at least base`},
		{[]retry.Option{retry.Exponential(second, second-1)}, `Exponential(1s, 999.999999ms): max must be at least base`},
		{[]retry.Option{retry.Exponential(second, -second)}, `Exponential(1s, -1s): max must be at least base`},
		{
			[]retry.Option{retry.Exponential(0, -1)},
			`Exponential(0s, -1ns): base must be greater than 0; Exponential(0s, -1ns): max must be at least base`,
		},
		{[]retry.Option{retry.Constant(0), retry.Exponential(0, 1)}, `Exponential(0s, 1ns): base must be greater than 0`},
		{[]retry.Option{retry.Constant(-1)}, `Constant(-1ns): must be at least 0`},
		{[]retry.Option{retry.Constant(math.MinInt64)}, `Constant(-2562047h47m16.854775808s): must be at least 0`},
		{[]retry.Option{retry.Exponential(1, 2), retry.Constant(-1)}, `Constant(-1ns): must be at least 0`},
		{[]retry.Option{retry.Jitter(0)}, `Jitter(0): must be Full, Equal, Decorrelated or None`},
		{[]retry.Option{retry.Jitter(5)}, `Jitter(5): must be Full, Equal, Decorrelated or None`},
		{[]retry.Option{retry.Jitter(255)}, `Jitter(255): must be Full, Equal, Decorrelated or None`},
		{[]retry.Option{retry.Jitter(retry.Full), retry.Jitter(0)}, `Jitter(0): must be Full, Equal, Decorrelated or None`},
		{[]retry.Option{retry.Jitter(9), retry.Constant(1)}, `Jitter(9): must be Full, Equal, Decorrelated or None`},
		{[]retry.Option{retry.MaxRetryAfter(-1)}, `MaxRetryAfter(-1ns): must be at least 0`},
		{[]retry.Option{retry.MaxRetryAfter(-second)}, `MaxRetryAfter(-1s): must be at least 0`},
		{[]retry.Option{retry.MaxRetryAfter(1), retry.MaxRetryAfter(-1)}, `MaxRetryAfter(-1ns): must be at least 0`},
		{[]retry.Option{retry.If(nil), retry.If(nil)}, `If(nil): must not be nil; If(nil): must not be nil`},
		{[]retry.Option{retry.If(nil), retry.OnRetry(nil)}, `If(nil): must not be nil; OnRetry(nil): must not be nil`},
		{[]retry.Option{retry.OnRetry(nil), retry.If(nil)}, `OnRetry(nil): must not be nil; If(nil): must not be nil`},
		{[]retry.Option{retry.Backoff(nil), retry.Attempts(0)}, `Backoff(nil): must not be nil; Attempts(0): must be at least 1`},
		{[]retry.Option{retry.Backoff(nil), retry.Jitter(0)}, `Backoff(nil): must not be nil; Jitter(0): must be Full, Equal, Decorrelated or None`},
		{
			[]retry.Option{retry.Attempts(0), retry.MaxElapsed(0)},
			`Attempts(0): must be at least 1; MaxElapsed(0s): must be greater than 0`,
		},
		{
			[]retry.Option{retry.MaxElapsed(0), retry.MaxRetryAfter(-1)},
			`MaxElapsed(0s): must be greater than 0; MaxRetryAfter(-1ns): must be at least 0`,
		},
		{
			[]retry.Option{nil, retry.Attempts(0), retry.MaxElapsed(-1), retry.Constant(-1), retry.Jitter(7), retry.MaxRetryAfter(-1)},
			`Option(nil): must not be nil; Attempts(0): must be at least 1; MaxElapsed(-1ns): must be greater than 0; ` +
				`Constant(-1ns): must be at least 0; Jitter(7): must be Full, Equal, Decorrelated or None; ` +
				`MaxRetryAfter(-1ns): must be at least 0`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			want := `retry "x": ` + tt.want
			opts := append([]retry.Option{retry.Name("x")}, tt.opts...)
			if r, err := retry.Build(opts...); r != nil || err == nil || err.Error() != want {
				t.Errorf("built %v, error %v, want %s", r, err, want)
			}
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %s", got, want)
				}
			}()
			retry.New(opts...)
		})
	}
	if _, err := retry.Build(retry.Name("")); err == nil || err.Error() != `retry "": Name(""): must not be empty` {
		t.Errorf("error %v for an empty name", err)
	}
}

// What is legal stays legal, at both ends; and a later option mends an earlier one.
func TestGoodSettings(t *testing.T) {
	for i, opts := range [][]retry.Option{
		{retry.Attempts(1)},
		{retry.Attempts(math.MaxInt)},
		{retry.MaxElapsed(1)},
		{retry.MaxElapsed(math.MaxInt64)},
		{retry.Exponential(1, 1)},
		{retry.Exponential(1, math.MaxInt64)},
		{retry.Exponential(math.MaxInt64, math.MaxInt64)},
		{retry.Constant(0)},
		{retry.Constant(math.MaxInt64)},
		{retry.Constant(0), retry.Jitter(retry.Decorrelated)},
		{retry.MaxRetryAfter(0)},
		{retry.MaxRetryAfter(math.MaxInt64)},
		{retry.Attempts(0), retry.Attempts(1)},
		{retry.Exponential(0, 0), retry.Constant(0)},
		{retry.Constant(-1), retry.Exponential(1, 1)},
		{retry.Name(""), retry.Name("x")},
	} {
		if _, err := retry.Build(opts...); err != nil {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	custom := retry.Backoff(func() backoff.BackOff { return &backoff.ZeroBackOff{} })
	tests := []struct {
		opts []retry.Option
		want string
	}{
		{nil, "attempts=3 backoff=exponential base=100ms max=10s jitter=full max_retry_after=1m0s classifier=false"},
		{
			[]retry.Option{retry.Constant(time.Second), retry.MaxElapsed(time.Hour), retry.Attempts(5)},
			"attempts=5 backoff=constant base=1s max=1s jitter=none max_elapsed=1h0m0s max_retry_after=1m0s classifier=false",
		},
		{
			[]retry.Option{custom, retry.MaxRetryAfter(0), retry.If(policy.DefaultClassifier)},
			"attempts=3 backoff=custom max_retry_after=0s classifier=true",
		},
	}
	for _, tt := range tests {
		d := retry.New(append(tt.opts, retry.Name("x"))...).Describe()
		var params []string
		for _, p := range d.Params {
			params = append(params, p.String())
		}
		if got := strings.Join(params, " "); d.Kind != "retry" || d.Name != "x" || got != tt.want {
			t.Errorf("described as %s %s: %s, want %s", d.Kind, d.Name, got, tt.want)
		}
	}
	if name := retry.New().Name(); name != "retry" {
		t.Errorf("default name %q", name)
	}
}

func TestJitterKindString(t *testing.T) {
	for j, want := range map[retry.JitterKind]string{
		retry.Full: "full", retry.Equal: "equal", retry.Decorrelated: "decorrelated", retry.None: "none", 9: "jitter(9)",
	} {
		if got := j.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// counting counts what is asked of a clock.
type counting struct {
	policy.Clock
	readings, timers int
}

func (c *counting) Now() time.Time         { c.readings++; return c.Clock.Now() }
func (c *counting) Elapsed() time.Duration { c.readings++; return c.Clock.Elapsed() }

func (c *counting) AfterFunc(d time.Duration, f func()) policy.Timer {
	c.timers++
	return c.Clock.AfterFunc(d, f)
}

func TestCosts(t *testing.T) {
	tests := []struct {
		name     string
		call     policy.Call
		readings int // the beginning; for a verdict its end
		allocs   float64
	}{
		{"BEHAVIOUR 33: success", returning(new(int), nil), 1, 0},
		{"permanent", returning(nil, retry.Permanent(errCall)), 1, 0},
		{"three fail: two contexts and the verdict", returning(nil, errCall), 2, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := &counting{Clock: policytest.NewClock(time.Unix(0, 0))}
			handler := retry.New(retry.Constant(0), retry.Clock(clock)).Wrap(policy.Invoke)
			handler(t.Context(), tt.call)
			if clock.readings != tt.readings || clock.timers != 0 {
				t.Errorf("%d readings of the clock and %d timers, want %d and none", clock.readings, clock.timers, tt.readings)
			}
			if n := testing.AllocsPerRun(1000, func() { handler(t.Context(), tt.call) }); n > tt.allocs {
				t.Errorf("%v allocations, want %v", n, tt.allocs)
			}
		})
	}
}
