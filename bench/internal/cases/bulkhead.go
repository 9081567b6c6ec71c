package cases

import (
	"github.com/eapache/go-resiliency/semaphore"
	failsafebulkhead "github.com/failsafe-go/failsafe-go/bulkhead"
	fortifybulkhead "github.com/felixgeelhaar/fortify/bulkhead"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
	xsemaphore "golang.org/x/sync/semaphore"
)

const queueLength = 10_000

func bulkheadRefusing() Case {
	return Case{
		Key:   "bulkhead",
		Title: "Bulkhead",
		About: "A free slot is taken and given back. Without a free slot the call would be refused at once.",
		Implementations: []Implementation{
			ours("holdfast", "", func(s *Setup) Loop { return do(holdfast.Compose(bulkhead.New(s.Slots))) }),
			ours("holdfast, by hand", "Acquire and release", func(s *Setup) Loop { return acquire(bulkhead.New(s.Slots)) }),
			bareCall(),
			peer("x/sync semaphore", "TryAcquire and Release", newTrySemaphore),
			peer("failsafe-go, permits", "by hand", func(s *Setup) Loop { return failsafeSlots(newFailsafeBulkhead(s)) }),
			peer("failsafe-go, Get", "", func(s *Setup) Loop { return failsafeGet(newFailsafeBulkhead(s)) }),
			peer("fortify", "", func(s *Setup) Loop {
				return fortifyLoop(fortifybulkhead.New[*Result](fortifybulkhead.Config{MaxConcurrent: s.Slots}))
			}),
		},
	}
}

func bulkheadQueueing() Case {
	return Case{
		Key:   "bulkhead-queue",
		Title: "Bulkhead with a queue",
		About: "The same, but without a free slot the call would wait for up to 1 s.",
		Implementations: []Implementation{
			ours("holdfast", "", func(s *Setup) Loop {
				return do(holdfast.Compose(bulkhead.New(s.Slots, bulkhead.MaxQueue(queueLength), bulkhead.MaxWait(maxWait))))
			}),
			bareCall(),
			peer("x/sync semaphore", "Acquire and Release; waits as long as ctx allows", newSemaphore),
			peer("go-resiliency", "", newResiliencySemaphore),
			peer("failsafe-go, Get", "", func(s *Setup) Loop {
				return failsafeGet(failsafebulkhead.NewBuilder[*Result](uint(s.Slots)).WithMaxWaitTime(maxWait).Build())
			}),
			peer("fortify", "its queue runs a goroutine", func(s *Setup) Loop {
				b := fortifybulkhead.New[*Result](fortifybulkhead.Config{
					MaxConcurrent: s.Slots, MaxQueue: queueLength, QueueTimeout: maxWait,
				})
				s.Cleanup(func() { _ = b.Close() })
				return fortifyLoop(b)
			}),
		},
	}
}

// acquire is the loop of a bulkhead of ours by hand.
func acquire(b *bulkhead.Bulkhead) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = acquired(b, w)
		}
		return v, err
	}
}

func acquired(b *bulkhead.Bulkhead, w Work) (*Result, error) {
	release, err := b.Acquire(w.Context)
	if err != nil {
		return nil, err
	}
	defer release()
	return w.Do(w.Context)
}

func newTrySemaphore(s *Setup) Loop {
	sem := xsemaphore.NewWeighted(int64(s.Slots))
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			if !sem.TryAcquire(1) {
				v, err = nil, errRefused
				continue
			}
			v, err = w.Do(w.Context)
			sem.Release(1)
		}
		return v, err
	}
}

func newSemaphore(s *Setup) Loop {
	sem := xsemaphore.NewWeighted(int64(s.Slots))
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			if err = sem.Acquire(w.Context, 1); err != nil {
				v = nil
				continue
			}
			v, err = w.Do(w.Context)
			sem.Release(1)
		}
		return v, err
	}
}

func newResiliencySemaphore(s *Setup) Loop {
	sem := semaphore.New(s.Slots, maxWait)
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			if err = sem.Acquire(); err != nil {
				v = nil
				continue
			}
			v, err = w.Plain()
			sem.Release()
		}
		return v, err
	}
}

func failsafeSlots(b failsafebulkhead.Bulkhead[*Result]) Loop {
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			if !b.TryAcquirePermit() {
				v, err = nil, failsafebulkhead.ErrFull
				continue
			}
			v, err = w.Do(w.Context)
			b.ReleasePermit()
		}
		return v, err
	}
}
