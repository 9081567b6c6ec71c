package cases

import (
	"github.com/eapache/go-resiliency/deadline"
	"github.com/felixgeelhaar/fortify/middleware"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/timeout"
)

func timeoutIgnored() Case {
	return Case{
		Key:             "timeout-ignored",
		Title:           "Timeout around a call that never looks at its ctx",
		About:           "The limit is 1 s; the call runs on the caller's goroutine and returns at once.",
		Implementations: timeouts(),
	}
}

func timeoutDone() Case {
	return Case{
		Key:             "timeout-done",
		Title:           "Timeout around a call that selects on Done",
		About:           "The same, but the call waits for an answer, which is there at once, or for the end of its ctx.",
		Work:            SelectOnDone,
		Implementations: timeouts(),
	}
}

func timeouts() []Implementation {
	return []Implementation{
		ours("holdfast", "", func(s *Setup) Loop { return do(holdfast.Compose(timeout.New(s.Limit))) }),
		bareCall(),
		contextWithTimeout(),
		peer("fortify", "", func(s *Setup) Loop {
			return fortifyChain(middleware.New[*Result]().WithTimeout(newFortifyTimeout[*Result](s), s.Limit))
		}),
		peer("failsafe-go, GetWithExecution", "", func(s *Setup) Loop { return failsafeExecution(newFailsafeTimeout(s)) }),
	}
}

func timeoutAbandoned() Case {
	return Case{
		Key:   "timeout-abandon",
		Title: "Timeout that returns at its limit even if the call does not",
		About: "The call runs on a goroutine of its own.",
		Implementations: []Implementation{
			ours("holdfast", "Abandon", func(s *Setup) Loop { return do(holdfast.Compose(timeout.New(s.Limit, timeout.Abandon()))) }),
			bareCall(),
			peer("go-resiliency", "its work returns no value, and takes a stop channel in place of a ctx", newDeadline),
		},
	}
}

func newDeadline(s *Setup) Loop {
	d := deadline.New(s.Limit)
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = deadlined(d, w)
		}
		return v, err
	}
}

// deadlined reads the value only where the work has returned: after a timeout it may
// still be writing.
func deadlined(d *deadline.Deadline, w Work) (*Result, error) {
	var value *Result
	err := d.Run(func(<-chan struct{}) (err error) {
		value, err = w.Plain()
		return err
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}
