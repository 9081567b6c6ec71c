package guard_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/holdfast-go/holdfast/internal/guard"
)

var errCall = errors.New("call failed")

func TestQuiet(t *testing.T) {
	tests := []struct {
		name string
		f    func()
	}{
		{"nothing", func() {}},
		{"panic", func() { panic("callback") }},
		{"panic(nil)", func() { panic(any(nil)) }},
		{"a panic within a panic", func() {
			defer func() { panic("second") }()
			panic("first")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if got := recover(); got != errCall {
					t.Errorf("recovered %v, want the call's own panic", got)
				}
			}()
			defer func() {
				ran := false
				guard.Quiet(func() {
					ran = true
					tt.f()
				})
				if !ran {
					t.Error("f did not run")
				}
			}()
			panic(errCall)
		})
	}
}

// Goexit ends the goroutine all the same: nothing can stop that.
func TestQuietGoexit(t *testing.T) {
	returned := false
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		guard.Quiet(runtime.Goexit)
		returned = true
	}()
	<-ended
	if returned {
		t.Error("Goexit was stopped")
	}
}

// Where nobody panics but the callback, it is silent too.
func TestQuietAlone(t *testing.T) {
	guard.Quiet(func() { panic("callback") })
}
