package cases

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// checks say what it takes to have a place in a case. Every case has one.
var checks = map[string]func(t *testing.T, build func(*Setup) Loop){
	"floors":                checkPasses,
	"breaker-consecutive":   checkConsecutive,
	"breaker-count":         checkCount,
	"breaker-time":          checkTime,
	"breaker-slow":          checkSlow,
	"breaker-open":          checkOpen,
	"bulkhead":              checkRefuses,
	"bulkhead-queue":        checkQueues,
	"ratelimit":             checkRate,
	"retry-success":         checkRetries,
	"retry-failing":         checkRetriesAtOnce,
	"timeout-ignored":       checkCancels,
	"timeout-done":          checkCancels,
	"timeout-abandon":       checkAbandons,
	"fallback-unused":       checkPasses,
	"fallback-used":         checkAnswers,
	"retry-breaker-timeout": checkGuardTimed,
	"retry-breaker":         checkGuard,
	"pipeline":              checkPipeline,
	"pipeline-untimed":      checkWindow,
	"pipeline-cancellable":  checkPipeline,
	"closure":               checkGuard,
	"struct":                checkGuard,
	"pipeline-observed":     checkPipeline,
}

// exempt are the implementations that cannot do all that a case's check asks for: floors
// and yardsticks, and among the peers those whose note says so.
func exempt(i Implementation) bool {
	return (i.Kind == Floor && i.Name != "one packed word" && i.Name != "context.WithTimeout") || i.Kind == Yardstick
}

func TestEveryImplementationDoesWhatItsCaseSays(t *testing.T) {
	for _, c := range All() {
		check := checks[c.Key]
		if check == nil {
			t.Errorf("%s: no check", c.Key)
			continue
		}
		for _, implementation := range c.Implementations {
			t.Run(c.Key+"/"+implementation.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if implementation.New == nil {
						t.Fatal("no implementation")
					}
					if c.Work == nil {
						checkPasses(t, opening(c, implementation.New))
					}
					if !exempt(implementation) && !outOfPlace(c, implementation) {
						check(t, implementation.New)
					}
					time.Sleep(2 * openFor) // an open breaker of go-resiliency holds a goroutine
				})
			})
		}
	}
}

// outOfPlace is context.WithTimeout where it is a floor for a whole pipeline.
func outOfPlace(c Case, i Implementation) bool {
	return i.Name == "context.WithTimeout" && c.Key != "timeout-ignored" && c.Key != "timeout-done"
}

// opening leaves out the success path where a case has none.
func opening(c Case, build func(*Setup) Loop) func(*Setup) Loop {
	if c.Key != "breaker-open" {
		return build
	}
	return func(*Setup) Loop {
		return func(n int, w Work) (v *Result, err error) {
			for range n {
				v, err = w.Do(w.Context)
			}
			return v, err
		}
	}
}

func TestKeysAndNamesAreUnique(t *testing.T) {
	var keys []string
	for _, c := range All() {
		keys = append(keys, c.Key)
		var names []string
		for _, implementation := range c.Implementations {
			names = append(names, implementation.Name)
		}
		if c.Implementations[0].Kind != Ours {
			t.Errorf("%s: the first implementation is not ours", c.Key)
		}
		slices.Sort(names)
		if len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("%s: names twice: %v", c.Key, names)
		}
	}
	slices.Sort(keys)
	if len(slices.Compact(slices.Clone(keys))) != len(keys) {
		t.Errorf("keys twice: %v", keys)
	}
}

// setUp builds with small settings.
func setUp(t *testing.T, build func(*Setup) Loop) Loop {
	t.Helper()
	s := NewSetup()
	s.Slots, s.Tokens, s.Period, s.Limit = 2, 5, time.Minute, 50*time.Millisecond
	t.Cleanup(s.Close)
	return build(s)
}

// counted counts how often work is run.
func counted(do func(ctx context.Context) (*Result, error)) (Work, *atomic.Int64) {
	ran := new(atomic.Int64)
	return NewWork(func(ctx context.Context) (*Result, error) {
		ran.Add(1)
		return do(ctx)
	}), ran
}

func succeeding() (Work, *atomic.Int64) {
	return counted(func(context.Context) (*Result, error) { return done, nil })
}

func failing() (Work, *atomic.Int64) {
	return counted(func(context.Context) (*Result, error) { return nil, ErrWork })
}

// runs fails t unless n calls of w run it want times, and end as wanted.
func runs(t *testing.T, loop Loop, n int, w Work, ran *atomic.Int64, want int64, ok bool) {
	t.Helper()
	before := ran.Load()
	value, err := loop(n, w)
	if got := ran.Load() - before; got != want {
		t.Fatalf("%d calls ran the work %d times, want %d", n, got, want)
	}
	if ok && (err != nil || value == nil || value.ID != done.ID) {
		t.Fatalf("answer %v, %v; want the work's", value, err)
	}
	if !ok && err == nil {
		t.Fatalf("answer %v without an error", value)
	}
}

func TestObservedIsTold(t *testing.T) {
	var kinds []policy.Kind
	s := NewSetup()
	s.Observer = policy.ObserverFunc(func(_ context.Context, e policy.Event) { kinds = append(kinds, e.Kind) })
	defer s.Close()
	if _, err := observed().Implementations[0].New(s)(1, Succeed()); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(kinds, policy.CallDone) || !slices.Contains(kinds, policy.AttemptDone) {
		t.Errorf("told %v, want at least an attempt and a call", kinds)
	}
}
