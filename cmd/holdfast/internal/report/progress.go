package report

import (
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
)

// A Progress is a bar that grows with every order. The zero Progress shows nothing.
type Progress struct {
	bar  *progress.Tracker
	w    progress.Writer
	done chan struct{}
}

// ShowProgress shows a bar on a terminal until Stop is called.
func ShowProgress(terminal io.Writer, name string, orders int) *Progress {
	p := &Progress{
		bar: &progress.Tracker{
			Message: name, Total: int64(orders),
			AutoStopDisabled: true, RemoveOnCompletion: true, // it stays until Stop: answers are not the end
		},
		w:    progress.NewWriter(),
		done: make(chan struct{}),
	}
	p.w.SetOutputWriter(terminal)
	p.w.SetUpdateFrequency(100 * time.Millisecond)
	p.w.SetTrackerPosition(progress.PositionRight)
	p.w.Style().Visibility.ETA = false
	p.w.AppendTracker(p.bar)
	go func() {
		defer close(p.done)
		p.w.Render()
	}()
	return p
}

// Answered counts one more order. It is safe for concurrent use.
func (p *Progress) Answered() {
	if p.bar != nil {
		p.bar.Increment(1)
	}
}

// Stop removes the bar, and returns when nothing is written to the terminal any more.
func (p *Progress) Stop() {
	if p.bar == nil {
		return
	}
	p.bar.MarkAsDone()
	p.w.Stop()
	<-p.done
}
