package cases

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func checkPasses(t *testing.T, build func(*Setup) Loop) {
	s := NewSetup()
	defer s.Close()
	w, ran := succeeding()
	runs(t, build(s), 7, w, ran, 7, true)
}

func checkConsecutive(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	ok, succeeded := succeeding()
	bad, failed := failing()
	runs(t, loop, failuresInARow-1, bad, failed, failuresInARow-1, false)
	runs(t, loop, 1, ok, succeeded, 1, true)
	runs(t, loop, failuresInARow-1, bad, failed, failuresInARow-1, false)
	runs(t, loop, 1, bad, failed, 1, false)
	runs(t, loop, 3, ok, succeeded, 0, false)
}

func checkCount(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	ok, succeeded := succeeding()
	bad, failed := failing()
	runs(t, loop, windowFailures-1, bad, failed, windowFailures-1, false)
	runs(t, loop, windowCalls, ok, succeeded, windowCalls, true) // out of the window
	runs(t, loop, windowFailures, bad, failed, windowFailures, false)
	runs(t, loop, 3, ok, succeeded, 0, false)
}

func checkTime(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	ok, succeeded := succeeding()
	bad, failed := failing()
	runs(t, loop, minimumCalls-1, bad, failed, minimumCalls-1, false) // too few
	time.Sleep(windowPeriod + windowPeriod/10 + time.Second)          // out of the window
	runs(t, loop, minimumCalls/2, ok, succeeded, minimumCalls/2, true)
	runs(t, loop, minimumCalls/2, bad, failed, minimumCalls/2, false)
	runs(t, loop, 3, ok, succeeded, 0, false)
}

func checkSlow(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	quick, succeeded := succeeding()
	slow, took := counted(func(context.Context) (*Result, error) {
		time.Sleep(slowerThan + time.Millisecond)
		return done, nil
	})
	runs(t, loop, 90, quick, succeeded, 90, true)
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() { loop(1, slow) }) // side by side, within the window
	}
	group.Wait()
	if got := took.Load(); got != 100 {
		t.Fatalf("%d slow calls were admitted, want 100", got)
	}
	runs(t, loop, 3, quick, succeeded, 0, false)
}

func checkOpen(t *testing.T, build func(*Setup) Loop) {
	w, ran := succeeding()
	runs(t, setUp(t, build), 3, w, ran, 0, false)
}

func checkRefuses(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	leave := occupy(loop, 2)
	w, ran := succeeding()
	runs(t, loop, 1, w, ran, 0, false)
	leave()
	runs(t, loop, 1, w, ran, 1, true)
}

func checkQueues(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	leave := occupy(loop, 2)
	w, ran := succeeding()
	answered := make(chan error)
	go func() {
		_, err := loop(1, w)
		answered <- err
	}()
	synctest.Wait()
	if ran.Load() != 0 {
		t.Fatal("the work was run without a slot")
	}
	leave()
	if err := <-answered; err != nil {
		t.Fatalf("after a slot was free: %v", err)
	}
}

// occupy has n calls stay inside until leave.
func occupy(loop Loop, n int) (leave func()) {
	stay := make(chan struct{})
	w, _ := counted(func(context.Context) (*Result, error) {
		<-stay
		return done, nil
	})
	for range n {
		go loop(1, w)
	}
	synctest.Wait()
	return func() {
		close(stay)
		synctest.Wait()
	}
}

// checkRate takes a limiter that waits for one that refuses: either way, no more pass
// at once than the burst, and a minute later more do.
func checkRate(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	w, ran := succeeding()
	start := time.Now()
	var atOnce int64
	for range 10 {
		loop(1, w)
		if time.Since(start) == 0 {
			atOnce = ran.Load()
		}
	}
	if atOnce < 1 || atOnce > 5 {
		t.Fatalf("%d calls passed at once, want up to 5", atOnce)
	}
	time.Sleep(time.Hour)
	before := ran.Load()
	if _, err := loop(1, w); err != nil || ran.Load() != before+1 {
		t.Fatalf("an hour later: %v", err)
	}
}

func checkRetries(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	bad, failed := failing()
	start := time.Now()
	runs(t, loop, 1, bad, failed, attempts, false)
	if took := time.Since(start); took != firstDelay+2*firstDelay {
		t.Fatalf("waited %v, want %v", took, 3*firstDelay)
	}
	var calls atomic.Int64
	third, ran := counted(func(context.Context) (*Result, error) {
		if calls.Add(1) < attempts {
			return nil, ErrWork
		}
		return done, nil
	})
	runs(t, loop, 1, third, ran, attempts, true)
}

func checkRetriesAtOnce(t *testing.T, build func(*Setup) Loop) {
	bad, failed := failing()
	start := time.Now()
	loop := setUp(t, build)
	runs(t, loop, 2, bad, failed, 2*attempts, false)
	if _, err := loop(1, bad); !errors.Is(err, ErrWork) {
		t.Fatalf("error %v does not tell the work's", err)
	}
	if took := time.Since(start); took != 0 {
		t.Fatalf("waited %v", took)
	}
}

func checkCancels(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	w, ran := counted(func(ctx context.Context) (*Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	start := time.Now()
	runs(t, loop, 1, w, ran, 1, false)
	if took := time.Since(start); took != 50*time.Millisecond {
		t.Fatalf("cancelled after %v, want 50ms", took)
	}
}

func checkAbandons(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	w, ran := counted(func(context.Context) (*Result, error) {
		time.Sleep(time.Hour)
		return done, nil
	})
	start := time.Now()
	runs(t, loop, 1, w, ran, 1, false)
	if took := time.Since(start); took != 50*time.Millisecond {
		t.Fatalf("answered after %v, want 50ms", took)
	}
	time.Sleep(2 * time.Hour)
}

func checkAnswers(t *testing.T, build func(*Setup) Loop) {
	bad, _ := failing()
	if value, err := setUp(t, build)(1, bad); err != nil || value != substitute {
		t.Fatalf("answer %v, %v; want the substitute", value, err)
	}
}

// checkGuard: the fifth failure, the second attempt of the second call, opens the
// circuit, and an open circuit ends the retries.
func checkGuard(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	ok, succeeded := succeeding()
	bad, failed := failing()
	runs(t, loop, 1, ok, succeeded, 1, true)
	runs(t, loop, 1, bad, failed, attempts, false)
	start := time.Now()
	runs(t, loop, 1, bad, failed, failuresInARow-attempts, false)
	if took := time.Since(start); took > firstDelay+2*firstDelay {
		t.Fatalf("the retries went on for %v", took)
	}
	start = time.Now()
	runs(t, loop, 2, ok, succeeded, 0, false)
	if took := time.Since(start); took != 0 {
		t.Fatalf("an open circuit was retried for %v", took)
	}
}

func checkGuardTimed(t *testing.T, build func(*Setup) Loop) {
	checkGuard(t, build)
	checkTimesOut(t, build)
}

// checkWindow: there are two slots, and a hundred failures open the circuit.
func checkWindow(t *testing.T, build func(*Setup) Loop) {
	checkRefuses(t, build)
	loop := setUp(t, build)
	bad, failed := failing()
	for failed.Load() < minimumCalls {
		before := failed.Load()
		if _, err := loop(1, bad); err == nil {
			t.Fatal("a failing call succeeded")
		}
		if failed.Load() == before {
			t.Fatalf("open after %d calls, want %d", before, minimumCalls)
		}
	}
	ok, succeeded := succeeding()
	runs(t, loop, 3, ok, succeeded, 0, false)
}

func checkPipeline(t *testing.T, build func(*Setup) Loop) {
	checkWindow(t, build)
	checkTimesOut(t, build)
}

// checkTimesOut: each attempt is bounded by itself.
func checkTimesOut(t *testing.T, build func(*Setup) Loop) {
	loop := setUp(t, build)
	w, ran := counted(func(ctx context.Context) (*Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	start := time.Now()
	runs(t, loop, 1, w, ran, attempts, false)
	if took := time.Since(start); took != 3*50*time.Millisecond+3*firstDelay {
		t.Fatalf("three attempts of 50ms each took %v", took)
	}
}
