package policytest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/policy"
)

// Run checks that a policy keeps the rules that its callers, and the policies around
// it, rely on: see the checks' names. Each check is a subtest in a synctest bubble of
// its own, so a wait takes no time, and whatever is left running fails the check. It
// takes some milliseconds, and is worth running with -race.
//
// make makes the policy. It is called several times within each check, and must
// return a fresh policy each time, made there and then: nothing made before the
// bubble, such as a timer or a channel, may be part of it. The policy should
//
//   - take time from the system, which in a bubble is the bubble's;
//   - let at most some 100 calls run at once: a permit that leaks is found by
//     ending 100 calls badly;
//   - admit a call when fresh, and again within a year, whatever has happened;
//   - leave a success as it is. It may answer an error with a value.
//
// What no bubble can know hangs until go test's timeout: a policy that waits for a
// lock that nobody releases.
func Run(t *testing.T, make func() policy.Policy) {
	t.Helper()
	for _, c := range checks {
		ok := t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { c.check(t, make) })
		})
		if !ok && c.fundamental {
			return
		}
	}
}

// checks are what Run checks. Where a fundamental one fails, the rest would only
// repeat it.
var checks = []struct {
	name        string
	fundamental bool
	check       func(t *testing.T, fresh func() policy.Policy)
}{
	{"no goroutine of its own", true, checkIdle},
	{"success passes", true, checkSuccess},
	{"no lock across the call", true, checkLock},
	{"error stays reachable", false, checkError},
	{"refusal is final", false, checkFinal},
	{"call is passed on", false, checkCall},
	{"context is passed on", false, checkContext},
	{"done context", false, checkDone},
	{"cancel ends every wait", false, checkCancel},
	{"deadline ends every wait", false, checkDeadline},
	{"panic passes", false, checkPanic},
	{"Goexit passes", false, checkGoexit},
	{"value is returned or discarded", false, checkValues},
	{"kept value stays alive", false, checkKept},
	{"two pipelines", false, checkPipelines},
	{"storm", false, checkStorm},
	{"description", false, checkDescription},
	{"observers", false, checkObservers},
}

var (
	errCall   = errors.New("policytest: the call failed")
	errGone   = errors.New("policytest: the caller left")
	errRefuse = fmt.Errorf("policytest: %w", policy.ErrRejected)
)

// refusal tempts a retry with a wait.
type refusal struct{ error }

func (refusal) RetryAfter() (time.Duration, bool) { return time.Millisecond, true }
func (r refusal) Unwrap() error                   { return r.error }

// admits fails the test unless a call is run within a year.
func admits(t *testing.T, handler policy.Handler, after string) {
	t.Helper()
	const year = 365 * 24 * time.Hour
	for patience := time.Second; patience < year; patience *= 2 {
		ran := make(chan bool, 1)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		handler(ctx, policy.CallFunc(func(context.Context) (any, error) {
			ran <- true
			return nil, nil
		}))
		<-ctx.Done()
		cancel()
		if len(ran) > 0 {
			return
		}
	}
	t.Errorf("after %s, no call is run within a year", after)
}
