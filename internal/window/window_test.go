package window

import (
	"math"
	"testing"
	"time"
)

// event is a call as a naive window remembers it: all of them, for ever.
type event struct {
	at            time.Duration
	failure, slow bool
}

func count(events []event) Counts {
	var c Counts
	for _, e := range events {
		c.add(e.failure, e.slow)
	}
	return c
}

// lastOf is what a window over the last n calls holds.
func lastOf(n int, events []event) Counts { return count(events[max(0, len(events)-n):]) }

// withinOf is what a window over span holds at now: the events whose bucket is among the
// last ten.
func withinOf(span, now time.Duration, events []event) Counts {
	bucket := func(at time.Duration) time.Duration { return at * Buckets / span } // small enough here
	var c Counts
	for _, e := range events {
		if bucket(e.at) > bucket(now)-Buckets {
			c.add(e.failure, e.slow)
		}
	}
	return c
}

// FuzzWindows compares both windows with a slice of all events. Each byte of script is a
// call: how long after the one before, and what it was.
func FuzzWindows(f *testing.F) {
	f.Add(uint8(10), []byte{1, 2, 3, 255, 4, 0, 0, 7})
	f.Add(uint8(13), []byte("a call now and then, and a pause \xff\xff and more"))
	f.Fuzz(func(t *testing.T, size uint8, script []byte) {
		n, span := int(size)%20+1, time.Duration(size)+Buckets
		last, within := NewLast(n), NewWithin(span, 0)
		now := time.Duration(0)
		var events []event
		for _, b := range script[:min(len(script), 300)] {
			if b == 255 {
				now += 20 * span
			} else {
				now += time.Duration(b >> 3)
			}
			if b&4 != 0 {
				if got, want := within.Counts(now), withinOf(span, now, events); got != want {
					t.Fatalf("Within(%d) at %d looked at: %v, want %v", span, now, got, want)
				}
			}
			e := event{now, b&1 != 0, b&2 != 0}
			events = append(events, e)
			last.Record(now, e.failure, e.slow)
			within.Record(now, e.failure, e.slow)
			if got, want := last.Counts(now), lastOf(n, events); got != want {
				t.Fatalf("Last(%d) after %d: %v, want %v", n, len(events), got, want)
			}
			if got, want := within.Counts(now), withinOf(span, now, events); got != want {
				t.Fatalf("Within(%d) at %d: %v, want %v", span, now, got, want)
			}
		}
	})
}

func TestWithinEdges(t *testing.T) {
	const span = 10 * time.Second
	tests := []struct {
		name  string
		span  time.Duration
		calls []time.Duration
		at    time.Duration
		want  int
	}{
		{"BEHAVIOUR 8: still there", span, []time.Duration{900 * time.Millisecond}, span - 1, 1},
		{"BEHAVIOUR 8: gone with its bucket", span, []time.Duration{900 * time.Millisecond}, span, 0},
		{"bucket by bucket", span, []time.Duration{0, 1200 * time.Millisecond}, span, 1},
		{"a time from before is taken as the newest bucket's", span, []time.Duration{5 * time.Second, 0}, 14 * time.Second, 2},
		{"years of silence", span, []time.Duration{0}, 100 * 365 * 24 * time.Hour, 0},
		{"the end of time", span, []time.Duration{0, math.MaxInt64}, math.MaxInt64, 1},
		{"a span of all time", math.MaxInt64, []time.Duration{0, math.MaxInt64 - 1}, math.MaxInt64, 1},
		{"the shortest span", Buckets, []time.Duration{0, 1, 2}, 11, 1},
		{"a span that ten does not divide", 15, []time.Duration{0}, 14, 1},
		{"and its end", 15, []time.Duration{0}, 15, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWithin(tt.span, 0)
			for _, at := range tt.calls {
				w.Record(at, true, true)
			}
			if got := w.Counts(tt.at); got != (Counts{tt.want, tt.want, tt.want}) {
				t.Errorf("%v, want %d", got, tt.want)
			}
		})
	}
}

func TestReset(t *testing.T) {
	last, within := NewLast(2), NewWithin(10*time.Second, 0)
	for _, w := range []Window{last, within} {
		w.Record(0, true, false)
		w.Reset(1500 * time.Millisecond)
		if got := w.Counts(1500 * time.Millisecond); got != (Counts{}) {
			t.Errorf("%T holds %v after Reset", w, got)
		}
		w.Record(1500*time.Millisecond, false, true)
		if got := w.Counts(11499 * time.Millisecond); got != (Counts{Calls: 1, Slow: 1}) {
			t.Errorf("%T holds %v, want one slow call", w, got)
		}
	}
	if got := within.Counts(11500 * time.Millisecond); got != (Counts{}) {
		t.Errorf("buckets are not counted from Reset: %v", got)
	}
}
