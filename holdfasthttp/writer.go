package holdfasthttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/policy"
)

// A writer is the ResponseWriter of a handler under policies. It passes everything on at
// once, and knows whether the handler has answered. A handler that was abandoned cannot
// write any more, and its header is a map of its own, so that ours can be written.
type writer struct {
	inner     http.ResponseWriter
	header    http.Header
	elsewhere bool // the handler may run on another goroutine

	mu       sync.Mutex // guards the fields below, and every use of inner by the handler
	ctx      context.Context
	code     int  // of the answer; 0: none yet
	late     bool // the handler answered after ctx had ended
	hijacked bool
	running  bool
	closed   bool // the request has been answered, by whomever
}

func newWriter(inner http.ResponseWriter, elsewhere bool) *writer {
	header := inner.Header().Clone()
	if header == nil {
		header = http.Header{}
	}
	return &writer{inner: inner, header: header, elsewhere: elsewhere}
}

// begin says that the handler is about to run under ctx.
func (w *writer) begin(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return http.ErrHandlerTimeout
	}
	w.ctx, w.running = ctx, true
	return nil
}

// finish says that the handler has returned, and tells what its answer was. One that
// ctx has cut, before it answered or in the midst of it, has failed. Where the caller has
// left, the answer says nothing.
func (w *writer) finish(ctx, caller context.Context) (code int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
	if !w.late || caller.Err() != nil {
		err = policy.ContextError(ctx)
	}
	if w.code == 0 && err == nil {
		return http.StatusOK, nil // which the server writes
	}
	return w.code, err
}

// close keeps the handler from writing.
func (w *writer) close() (committed, running bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return w.code != 0, w.running && !w.hijacked
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. A 1xx is no answer yet, but for 101.
func (w *writer) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if w.code == 0 {
		w.sync()
	}
	w.inner.WriteHeader(code)
	if code >= 200 || code == http.StatusSwitchingProtocols {
		w.commitLocked(code)
	}
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.writableLocked(); err != nil {
		return 0, err
	}
	return w.inner.Write(p)
}

// WriteString implements io.StringWriter.
func (w *writer) WriteString(s string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.writableLocked(); err != nil {
		return 0, err
	}
	return io.WriteString(w.inner, s)
}

// ReadFrom implements io.ReaderFrom, for net/http to send files with. Where the handler
// may be abandoned, it copies piece by piece: the request cannot end during one.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	if w.elsewhere {
		return io.Copy(struct{ io.Writer }{w}, src)
	}
	w.mu.Lock()
	err := w.writableLocked()
	w.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return io.Copy(w.inner, src)
}

// Flush implements http.Flusher.
func (w *writer) Flush() { w.FlushError() }

// FlushError is what http.ResponseController looks for.
func (w *writer) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return http.ErrHandlerTimeout
	}
	if w.code == 0 {
		w.sync()
	}
	err := http.NewResponseController(w.inner).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.commitLocked(http.StatusOK)
	}
	return err
}

// Hijack implements http.Hijacker.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, nil, http.ErrHandlerTimeout
	}
	conn, rw, err := http.NewResponseController(w.inner).Hijack()
	if err == nil {
		w.hijacked = true
		w.commitLocked(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

// Push implements http.Pusher.
func (w *writer) Push(target string, opts *http.PushOptions) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.inner.(http.Pusher); ok && !w.closed {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// Unwrap is what http.ResponseController goes on with, for deadlines and full duplex.
// After the request's end there is nothing to control.
func (w *writer) Unwrap() http.ResponseWriter {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	return w.inner
}

func (w *writer) writableLocked() error {
	if w.closed {
		return http.ErrHandlerTimeout
	}
	if w.code == 0 {
		w.sync()
		w.commitLocked(http.StatusOK)
	}
	return nil
}

// commitLocked notes the handler's first answer.
func (w *writer) commitLocked(code int) {
	if w.code == 0 {
		w.code, w.late = code, w.ctx.Err() != nil
	}
}

// sync makes the handler's header the response's.
func (w *writer) sync() {
	h := w.inner.Header()
	clear(h)
	maps.Copy(h, w.header)
}

// trailers passes on what the handler has set after its answer. It has returned.
func (w *writer) trailers() {
	h := w.inner.Header()
	for key, values := range w.header {
		if strings.HasPrefix(key, http.TrailerPrefix) || declared(w.header, key) {
			h[key] = values
		}
	}
}

// declared tells whether the field Trailer names key.
func declared(h http.Header, key string) bool {
	for _, names := range h["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			if http.CanonicalHeaderKey(strings.TrimSpace(name)) == key {
				return true
			}
		}
	}
	return false
}
