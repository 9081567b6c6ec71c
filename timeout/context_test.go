package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/timeout"
)

// within runs f as a call under p.
func within(ctx context.Context, p policy.Policy, f func(ctx context.Context)) error {
	_, err := p.Wrap(policy.Invoke)(ctx, policy.CallFunc(func(ctx context.Context) (any, error) {
		f(ctx)
		return nil, nil
	}))
	return err
}

// The four combinations of the limit and the caller's deadline, on either clock, asked
// in whatever order: Deadline, Done, Err and Cause agree with package context.
func TestContext(t *testing.T) {
	clocks := map[string]func() (timeout.Option, func(time.Duration), func(context.Context, time.Duration) (context.Context, context.CancelFunc)){
		"SystemClock": func() (timeout.Option, func(time.Duration), func(context.Context, time.Duration) (context.Context, context.CancelFunc)) {
			return timeout.Clock(policy.SystemClock), time.Sleep, context.WithTimeout
		},
		"policytest.Clock": func() (timeout.Option, func(time.Duration), func(context.Context, time.Duration) (context.Context, context.CancelFunc)) {
			c := policytest.NewClock(time.Unix(1e9, 0))
			return timeout.Clock(c), c.Advance, c.WithTimeout
		},
	}
	tests := []struct {
		name            string
		limit, deadline time.Duration // 0: none
		ends            time.Duration // 0: not at all
		exceeded        bool
	}{
		{"neither", 0, 0, 0, false},
		{"limit", 50 * ms, 0, 50 * ms, true},
		{"deadline", 0, 50 * ms, 50 * ms, false},
		{"limit first", 50 * ms, 80 * ms, 50 * ms, true},
		{"deadline first", 80 * ms, 50 * ms, 50 * ms, false},
		{"both at once", 50 * ms, 50 * ms, 50 * ms, false},
		{"far away", math.MaxInt64, 0, 0, false},
	}
	asks := map[string]func(ctx context.Context){
		"nothing":       func(context.Context) {},
		"Done":          func(ctx context.Context) { ctx.Done() },
		"Deadline":      func(ctx context.Context) { ctx.Deadline() },
		"Deadline Done": func(ctx context.Context) { ctx.Deadline(); ctx.Done() },
		"Err":           func(ctx context.Context) { ctx.Err() },
		"Cause":         func(ctx context.Context) { context.Cause(ctx) },
	}
	for clock, on := range clocks {
		for ask, asked := range asks {
			for _, tt := range tests {
				for _, keeper := range []bool{false, true} {
					bubbled(t, fmt.Sprintf("%s/%s/asking %s/keeper %t", clock, tt.name, ask, keeper), func(t *testing.T) {
						option, advance, withTimeout := on()
						parent, cancel := context.WithCancel(t.Context())
						defer cancel()
						if tt.deadline > 0 {
							parent, cancel = withTimeout(parent, tt.deadline)
							defer cancel()
						}
						p := timeout.New(time.Hour, option, limit(tt.limit), timeout.Abandon())
						if tt.limit > 0 {
							p = timeout.New(tt.limit, option)
						}
						over := make(chan bool) // where there is no limit, the body is abandoned
						body := func(ctx context.Context) {
							defer close(over)
							advance(ms)
							asked(ctx)
							checkLive(t, ctx)
							if tt.ends == 0 {
								advance(time.Hour)
								checkLive(t, ctx)
								return
							}
							advance(tt.ends - ms - 1)
							synctest.Wait()
							checkLive(t, ctx)
							deadline, _ := ctx.Deadline()
							advance(1)
							synctest.Wait()
							checkEnded(t, ctx, context.DeadlineExceeded, tt.exceeded)
							if again, ok := ctx.Deadline(); !ok || !again.Equal(deadline) {
								t.Errorf("deadline %v, %t, was %v", again, ok, deadline)
							}
							advance(time.Hour)
							checkEnded(t, ctx, context.DeadlineExceeded, tt.exceeded)
						}
						if keeper {
							p.Wrap(policy.Invoke)(parent, &owner{invoke: body})
						} else if err := within(parent, p, body); err != nil && !errors.Is(err, parent.Err()) {
							t.Errorf("error %v", err)
						}
						<-over
					})
				}
			}
		}
	}
}

func checkLive(t *testing.T, ctx context.Context) {
	t.Helper()
	if err, cause := ctx.Err(), context.Cause(ctx); err != nil || cause != nil {
		t.Errorf("ctx has ended: %v, %v", err, cause)
	}
}

// checkEnded asks for everything twice, and then from several goroutines.
func checkEnded(t *testing.T, ctx context.Context, want error, exceeded bool) {
	t.Helper()
	for range 2 {
		err, cause := ctx.Err(), context.Cause(ctx)
		if _, ok := errors.AsType[*timeout.ExceededError](cause); ok != exceeded || err != want {
			t.Errorf("Err %v, Cause %v, want %v, with an ExceededError: %t", err, cause, want, exceeded)
		}
		if !errors.Is(cause, want) {
			t.Errorf("Cause %v, want one that Is %v", cause, want)
		}
		select {
		case <-ctx.Done():
		default:
			t.Error("Done is not closed")
		}
		child, cancel := context.WithCancel(ctx)
		if child.Err() != want || context.Cause(child) != cause {
			t.Errorf("child ended with %v, %v, want %v, %v", child.Err(), context.Cause(child), want, cause)
		}
		cancel()
	}
}

// BEHAVIOUR 54: what package context makes of the call's ctx ends with it, and takes
// no goroutine.
func TestChildren(t *testing.T) {
	type key struct{}
	for _, end := range []string{"limit", "caller", "return"} {
		for name, call := range map[string]func(func(context.Context)) policy.Call{
			"call": func(f func(context.Context)) policy.Call {
				return policy.CallFunc(func(ctx context.Context) (any, error) { f(ctx); return nil, nil })
			},
			"keeper": func(f func(context.Context)) policy.Call { return &owner{invoke: f} },
		} {
			bubbled(t, name+" ends by "+end, func(t *testing.T) {
				parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
				defer cancel()
				var ctx, child, grand context.Context
				want := context.Canceled
				const tries = 3
				ran := make(chan bool, tries)
				timeout.New(50*ms).Wrap(policy.Invoke)(parent, call(func(c context.Context) {
					ctx = c
					more := math.MaxInt
					for range tries { // others of the process may begin or end, but not each time
						before := runtime.NumGoroutine()
						var stop context.CancelFunc
						child, stop = context.WithCancel(ctx)
						context.AfterFunc(child, stop)
						grand, stop = context.WithTimeout(child, time.Hour)
						context.AfterFunc(grand, stop)
						context.AfterFunc(ctx, func() { ran <- true })
						more = min(more, runtime.NumGoroutine()-before)
					}
					if more > 0 {
						t.Errorf("%d goroutines more", more)
					}
					if d, ok := grand.Deadline(); !ok || time.Until(d) != 50*ms {
						t.Errorf("child's deadline in %v, want the limit", time.Until(d))
					}
					if grand.Value(key{}) != "v" || fmt.Sprint(ctx) == "" {
						t.Error("no value of the caller's")
					}
					switch end {
					case "limit":
						<-grand.Done()
						want = context.DeadlineExceeded
					case "caller":
						cancel()
						<-grand.Done()
					}
				}))
				<-ran
				synctest.Wait()
				for _, c := range []context.Context{ctx, child, grand} {
					if c.Err() != want || ctx.Value(key{}) != "v" {
						t.Errorf("%v ended with %v, want %v", c, c.Err(), want)
					}
				}
			})
		}
	}
}

// BEHAVIOUR 54: a request ends with the limit.
func TestRequest(t *testing.T) {
	arrived := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-r.Context().Done()
	}))
	defer server.Close()
	clock := policytest.NewClock(time.Unix(1e9, 0))
	go func() {
		<-arrived
		clock.Advance(time.Second)
	}()
	_, err := timeout.New(time.Second, timeout.Clock(clock)).Wrap(policy.Invoke)(t.Context(), policy.CallFunc(func(ctx context.Context) (any, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return nil, err
		}
		return server.Client().Do(request)
	}))
	checkExceeded(t, err, "timeout")
	server.Client().CloseIdleConnections()
}

// A context that was kept after the call has ended, asked or not, at once and for good.
func TestAfterReturn(t *testing.T) {
	asks := map[string]func(ctx context.Context){
		"unasked":        func(context.Context) {},
		"asked Err":      func(ctx context.Context) { ctx.Err() },
		"asked Done":     func(ctx context.Context) { ctx.Done() },
		"asked Deadline": func(ctx context.Context) { ctx.Deadline() },
	}
	for name, asked := range asks {
		t.Run(name, func(t *testing.T) {
			clock := policytest.NewClock(time.Unix(1e9, 0))
			parent, cancel := context.WithCancelCause(t.Context())
			var ctx context.Context
			within(parent, timeout.New(time.Second, timeout.Clock(clock)), func(c context.Context) {
				ctx = c
				asked(c)
			})
			if clock.Pending() != 0 {
				t.Errorf("%d timers left", clock.Pending())
			}
			checkEnded(t, ctx, context.Canceled, false)
			clock.Advance(time.Hour)
			cancel(errCall)
			checkEnded(t, ctx, context.Canceled, false)
			if errors.Is(context.Cause(ctx), errCall) {
				t.Error("the caller's cause, of a later end")
			}
		})
	}
}

// The deadline on a clock whose Now is stepped is right at any time, and the limit holds.
func TestSteppedClock(t *testing.T) {
	clock := policytest.NewClock(time.Unix(1e9, 0))
	err := within(t.Context(), timeout.New(50*ms, timeout.Clock(clock)), func(ctx context.Context) {
		for _, step := range []time.Duration{0, time.Hour, -2 * time.Hour} {
			clock.Set(clock.Now().Add(step))
			if d, ok := ctx.Deadline(); !ok || d.Sub(clock.Now()) != 50*ms {
				t.Errorf("%v left after a step of %v", d.Sub(clock.Now()), step)
			}
			checkLive(t, ctx)
			ctx.Done()
		}
		clock.Advance(50 * ms)
		checkEnded(t, ctx, context.DeadlineExceeded, true)
	})
	if err != nil {
		t.Errorf("error %v of a late success", err)
	}
}

// On the real clock, Deadline is the same whenever it is asked for.
func TestDeadlineIsStable(t *testing.T) {
	for _, first := range []string{"Deadline", "Done"} {
		within(t.Context(), timeout.New(time.Hour), func(ctx context.Context) {
			if first == "Done" {
				ctx.Done()
			}
			deadline, _ := ctx.Deadline()
			ctx.Done()
			for range 3 {
				if again, ok := ctx.Deadline(); !ok || again != deadline {
					t.Errorf("deadline %v after %v", again, deadline)
				}
			}
		})
	}
}

// A limit without end does not overflow, on the real clock either.
func TestLimitWithoutEnd(t *testing.T) {
	within(t.Context(), timeout.New(math.MaxInt64), func(ctx context.Context) {
		ctx.Done()
		checkLive(t, ctx)
		if d, ok := ctx.Deadline(); !ok || time.Until(d) < time.Hour {
			t.Errorf("deadline %v, %t", d, ok)
		}
	})
}
