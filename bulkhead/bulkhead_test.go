package bulkhead_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errCall = errors.New("call failed")

// take acquires a slot that must be there.
func take(t *testing.T, b *bulkhead.Bulkhead) (release func()) {
	t.Helper()
	release, err := b.Acquire(t.Context())
	if err != nil {
		t.Fatalf("no slot: %v", err)
	}
	return release
}

// free checks that n slots are free and the rest taken, by taking what there is.
func free(t *testing.T, b *bulkhead.Bulkhead, n int) {
	t.Helper()
	stats := b.Stats()
	if stats.InFlight != stats.Limit-n || stats.Queued != 0 {
		t.Fatalf("stats %+v, want %d slots free", stats, n)
	}
	for range n {
		defer take(t, b)()
	}
	if stats := b.Stats(); stats.InFlight != stats.Limit {
		t.Errorf("stats %+v with all slots taken", stats)
	}
}

func TestFull(t *testing.T) { // BEHAVIOUR 55
	b := bulkhead.New(2, bulkhead.Name("payments"))
	recorder := policytest.Record(b)
	first, second := take(t, b), take(t, b)
	defer second()

	_, err := b.Wrap(policy.Invoke)(t.Context(), policytest.Script(policytest.Return(1)))
	full, ok := errors.AsType[*bulkhead.FullError](err)
	if want := (bulkhead.FullError{Name: "payments", Limit: 2, InFlight: 2}); !ok || *full != want {
		t.Fatalf("error %v, want %+v", err, want)
	}
	if !errors.Is(err, bulkhead.ErrFull) || !policy.Rejected(err) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want a refusal that Is ErrFull", err)
	}
	if _, ok := policy.RetryAfter(err); ok {
		t.Error("the refusal knows when to retry")
	}
	if want := `bulkhead "payments": full: 2 of 2 slots taken, 0 queued`; err.Error() != want {
		t.Errorf("message %q, want %q", err, want)
	}

	if _, err := b.Acquire(t.Context()); !errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("by hand: error %v, want full", err)
	}
	first()
	free(t, b, 1)
	events := recorder.Events()
	if len(events) != 2 || events[0].Kind != policy.BulkheadRejected || events[0].Name != "payments" ||
		events[0].Err != err || events[0].Reason == "" || events[0].Time.IsZero() {
		t.Errorf("events %+v, want the refusal first", events)
	}
	if stats := b.Stats(); stats.Rejected != 2 {
		t.Errorf("stats %+v, want 2 rejected", stats)
	}
}

func TestFirstComeFirstServed(t *testing.T) { // BEHAVIOUR 56, 57
	tests := []struct {
		name   string
		leaves []int // of the waiters, numbered from 0, these give up
		want   []int
	}{
		{"BEHAVIOUR 56: in order", nil, []int{0, 1, 2}},
		{"BEHAVIOUR 57: head gives up", []int{0}, []int{1, 2}},
		{"middle gives up", []int{1}, []int{0, 2}},
		{"last gives up", []int{2}, []int{0, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bulkhead.New(1, bulkhead.MaxQueue(3))
				recorder := policytest.Record(b)
				release := take(t, b)
				served := make(chan int)
				cancels := make([]context.CancelFunc, 3)
				for i := range cancels {
					ctx, cancel := context.WithCancel(t.Context())
					cancels[i] = cancel
					defer cancel()
					go func() {
						if release, err := b.Acquire(ctx); err == nil {
							served <- i
							release()
						} else if !errors.Is(err, context.Canceled) || policy.Rejected(err) {
							t.Errorf("waiter %d: %v, want its own cancellation", i, err)
						}
					}()
					synctest.Wait()
				}
				_, err := b.Acquire(t.Context())
				full, ok := errors.AsType[*bulkhead.FullError](err)
				if !ok || full.InFlight != 1 || full.Queued != 3 {
					t.Errorf("error %v, want full with 3 queued", err)
				}

				for _, i := range tt.leaves {
					cancels[i]()
					synctest.Wait()
				}
				if got := b.Stats().Queued; got != len(tt.want) {
					t.Errorf("%d queued, want %d", got, len(tt.want))
				}
				release()
				for _, want := range tt.want {
					if got := <-served; got != want {
						t.Errorf("served %d, want %d", got, want)
					}
				}
				synctest.Wait()
				free(t, b, 1)
				q := policy.BulkheadQueued
				if got := recorder.Kinds()[:4]; !slices.Equal(got, []policy.Kind{q, q, q, policy.BulkheadRejected}) {
					t.Errorf("events %v, want three queued, one rejected", got)
				}
			})
		})
	}
}

func TestWait(t *testing.T) {
	const second = time.Second
	tests := []struct {
		name     string
		opts     []bulkhead.Option
		deadline time.Duration // 0: none
		holds    time.Duration // until the slot is released
		waits    time.Duration
		want     error // nil: served
	}{
		{"no queue", nil, 0, second, 0, bulkhead.ErrFull},
		{"as long as it takes", []bulkhead.Option{bulkhead.MaxQueue(1)}, 0, 1000 * time.Hour, 1000 * time.Hour, nil},
		{"in time", []bulkhead.Option{bulkhead.MaxQueue(1), bulkhead.MaxWait(2 * second)}, 0, second, second, nil},
		{"MaxWait passes", []bulkhead.Option{bulkhead.MaxQueue(1), bulkhead.MaxWait(second)}, 0, 2 * second, second, bulkhead.ErrFull},
		{"MaxWait(0) is no wait", []bulkhead.Option{bulkhead.MaxQueue(1), bulkhead.MaxWait(0)}, 0, second, 0, bulkhead.ErrFull},
		{"the longest MaxWait", []bulkhead.Option{bulkhead.MaxQueue(1), bulkhead.MaxWait(math.MaxInt64)}, 0, second, second, nil},
		{"almost the longest MaxWait", []bulkhead.Option{bulkhead.MaxQueue(1), bulkhead.MaxWait(math.MaxInt64 - 1)}, 0, second, second, nil},
		{"deadline", []bulkhead.Option{bulkhead.MaxQueue(1)}, second, 2 * second, second, context.DeadlineExceeded},
		{
			"deadline before MaxWait",
			[]bulkhead.Option{bulkhead.MaxQueue(1), bulkhead.MaxWait(3 * second)},
			second, 2 * second, second, context.DeadlineExceeded,
		},
		{
			"MaxWait before deadline",
			[]bulkhead.Option{bulkhead.MaxQueue(1), bulkhead.MaxWait(second)},
			3 * second, 2 * second, second, bulkhead.ErrFull,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bulkhead.New(1, tt.opts...)
				release := take(t, b)
				time.AfterFunc(tt.holds, release)
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tt.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.deadline)
				}
				defer cancel()

				start := time.Now()
				_, err := b.Wrap(policy.Invoke)(ctx, policytest.Script(policytest.Return(1)))
				if !errors.Is(err, tt.want) || policy.Rejected(err) != (tt.want == bulkhead.ErrFull) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				if waited := time.Since(start); waited != tt.waits {
					t.Errorf("waited %v, want %v", waited, tt.waits)
				}
				time.Sleep(tt.holds)
				synctest.Wait()
				free(t, b, 1)
			})
		})
	}
}

// MaxWait is the policy's clock's, and leaves no timer on it.
func TestMaxWaitOnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := policytest.NewClock(time.Unix(1, 0))
		b := bulkhead.New(1, bulkhead.MaxQueue(2), bulkhead.MaxWait(time.Second), bulkhead.Clock(clock))
		recorder := policytest.Record(b)
		release := take(t, b)
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				release, err := b.Acquire(t.Context())
				if err == nil {
					release()
				}
				errs <- err
			}()
			synctest.Wait()
			clock.Advance(time.Second / 2)
			clock.Set(time.Unix(9999, 0)) // a step of the wall clock is not time
		}
		if err := <-errs; !errors.Is(err, bulkhead.ErrFull) {
			t.Errorf("error %v, want full after MaxWait", err)
		}
		release()
		if err := <-errs; err != nil {
			t.Errorf("error %v, want served", err)
		}
		if clock.Pending() != 0 {
			t.Errorf("%d timers left", clock.Pending())
		}
		if e := recorder.Events()[0]; e.Kind != policy.BulkheadQueued || !e.Time.Equal(time.Unix(1, 0)) {
			t.Errorf("event %+v, want queued, at the clock's time", e)
		}
	})
}

func TestDoneContextBeatsAFreeSlot(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	b := bulkhead.New(1)
	if _, err := b.Acquire(ctx); !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the caller's end and its cause", err)
	}
	script := policytest.Script(policytest.Return(1))
	if _, err := b.Wrap(policy.Invoke)(ctx, script); !errors.Is(err, why) || script.Calls() != 0 {
		t.Errorf("error %v after %d calls, want the caller's end and no call", err, script.Calls())
	}
	free(t, b, 1)
}

func TestBadSettings(t *testing.T) {
	tests := []struct {
		name  string
		limit int
		opts  []bulkhead.Option
		want  string // "" is none
	}{
		{"limit", 0, nil, `bulkhead "bulkhead": New(0): must be at least 1`},
		{"negative limit", math.MinInt, nil, `bulkhead "bulkhead": New(-9223372036854775808): must be at least 1`},
		{"largest", math.MaxInt, []bulkhead.Option{bulkhead.MaxQueue(math.MaxInt), bulkhead.MaxWait(math.MaxInt64)}, ""},
		{"nil option", 1, []bulkhead.Option{nil}, `bulkhead "bulkhead": Option(nil): must not be nil`},
		{"nil clock", 1, []bulkhead.Option{bulkhead.Clock(nil)}, `bulkhead "bulkhead": Clock(nil): must not be nil`},
		{
			"all faults at once", -1,
			[]bulkhead.Option{bulkhead.MaxQueue(-1), bulkhead.MaxWait(-time.Second), bulkhead.Name("payments")},
			`bulkhead "payments": New(-1): must be at least 1; MaxQueue(-1): must be at least 0; MaxWait(-1s): must be at least 0`,
		},
		{"empty name", 1, []bulkhead.Option{bulkhead.Name("")}, `bulkhead "": Name(""): must not be empty`},
		{"the last wins", 1, []bulkhead.Option{bulkhead.MaxQueue(-1), bulkhead.MaxQueue(1)}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if _, err := bulkhead.Build(tt.limit, tt.opts...); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Build: %q, want %q", got, tt.want)
			}
			defer func() {
				if got, _ := recover().(string); got != tt.want {
					t.Errorf("New: panic %q, want %q", got, tt.want)
				}
			}()
			bulkhead.New(tt.limit, tt.opts...)
		})
	}
}

func TestDescribe(t *testing.T) {
	tests := []struct {
		opts []bulkhead.Option
		want string
	}{
		{nil, "limit=20 max_queue=0"},
		{[]bulkhead.Option{bulkhead.MaxQueue(5), bulkhead.MaxWait(time.Second)}, "limit=20 max_queue=5 max_wait=1s"},
		{[]bulkhead.Option{bulkhead.MaxWait(0)}, "limit=20 max_queue=0 max_wait=0s"},
	}
	for _, tt := range tests {
		d := bulkhead.New(20, append(tt.opts, bulkhead.Name("payments"))...).Describe()
		var params []string
		for _, p := range d.Params {
			params = append(params, p.String())
		}
		if got := strings.Join(params, " "); d.Kind != "bulkhead" || d.Name != "payments" || got != tt.want {
			t.Errorf("described as %+v, want %s", d, tt.want)
		}
	}
}

func TestFreeSlotAllocatesNothing(t *testing.T) {
	handler := bulkhead.New(1).Wrap(policy.Invoke)
	value := new(int)
	for name, call := range map[string]policy.Call{
		"success": policy.CallFunc(func(context.Context) (any, error) { return value, nil }),
		"failure": policy.CallFunc(func(context.Context) (any, error) { return nil, errCall }),
	} {
		if n := testing.AllocsPerRun(1000, func() { handler(t.Context(), call) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

func TestConformance(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return bulkhead.New(20) })
	policytest.Run(t, func() policy.Policy {
		return bulkhead.New(20, bulkhead.MaxQueue(1000), bulkhead.MaxWait(time.Second))
	})
}
