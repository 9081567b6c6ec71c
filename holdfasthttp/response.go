package holdfasthttp

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// How much is read of a body that nobody wants, and for how long: a new connection is
// cheaper than more.
const (
	drainBytes = 64 << 10
	drainTime  = 200 * time.Millisecond
)

var errDrained = errors.New("holdfasthttp: the body is not wanted")

// wrapBody has the exchange end with the body of resp. Where there is none, it ends now.
func wrapBody(resp *http.Response, method string, x *exchange, idle time.Duration) {
	if isBodyless(resp, method) {
		x.end()
		return
	}
	b := &body{source: resp.Body, exchange: x, idle: idle}
	if conn, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = &switched{body: b, conn: conn}
		return
	}
	resp.Body = b
}

// isBodyless is true of a response that has nothing to read. A length of 0 alone does not
// say so: over HTTP/2 trailers may follow, and who makes responses by hand may leave it.
func isBodyless(resp *http.Response, method string) bool {
	switch {
	case resp.Body == nil, isEmpty(resp.Body), method == http.MethodHead:
		return true
	default:
		return resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	}
}

// isEmpty is true of http.NoBody, and of what HTTP/2 has in its place: a type of its own,
// which has no state either.
func isEmpty(body io.Reader) bool {
	t := reflect.TypeOf(body)
	return t.Kind() == reflect.Struct && t.NumField() == 0
}

// bodyOf is the body of a response that wrapBody has seen, else nil.
func bodyOf(value any) *body {
	resp, ok := value.(*http.Response)
	if !ok || resp == nil {
		return nil
	}
	switch b := resp.Body.(type) {
	case *body:
		return b
	case *switched:
		return b.body
	default:
		return nil
	}
}

// A body is what the reader of a response holds. Its end, an error or Close, whichever is
// first, ends the exchange and runs what was kept for it.
type body struct {
	source   io.ReadCloser
	exchange *exchange
	idle     time.Duration // how long a read may wait; 0: no limit
	timer    *time.Timer   // of the read
	expired  atomic.Bool

	mu       sync.Mutex // guards the fields below
	ended    bool
	releases []func()
	room     [2]func() // for those of a timeout and a bulkhead
}

func (b *body) Read(p []byte) (int, error) {
	if b.idle > 0 {
		defer b.watch().Stop()
	}
	n, err := b.source.Read(p)
	if err == nil {
		return n, nil
	}
	if err != io.EOF {
		err = b.explain(err)
	}
	b.end()
	return n, err
}

func (b *body) explain(err error) error {
	if b.expired.Load() {
		return &BodyTimeoutError{Limit: b.idle, Err: err}
	}
	return forURLError(b.exchange.explain(err))
}

func (b *body) Close() error {
	defer b.end()
	return b.source.Close()
}

// watch ends the exchange unless the timer is stopped in time. It waits for one read at
// a time, as bodies do not allow more.
func (b *body) watch() *time.Timer {
	if b.timer == nil {
		b.timer = time.AfterFunc(b.idle, func() {
			b.expired.Store(true)
			b.exchange.cancel(ErrBodyTimeout)
		})
		return b.timer
	}
	b.timer.Reset(b.idle)
	return b.timer
}

// keep reports false if the body has ended.
func (b *body) keep(release func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return false
	}
	if b.releases == nil {
		b.releases = b.room[:0]
	}
	b.releases = append(b.releases, release)
	return true
}

func (b *body) end() {
	b.mu.Lock()
	ended, releases := b.ended, b.releases
	b.ended, b.releases = true, nil
	b.mu.Unlock()
	if ended {
		return
	}
	defer runAll(releases)
	b.exchange.end()
}

// runAll runs each of fs, the innermost policy's first, whatever the others do.
func runAll(fs []func()) {
	if len(fs) == 0 {
		return
	}
	defer runAll(fs[1:])
	fs[0]()
}

// discard reads the rest, if it is short and comes soon, and closes the body.
func (b *body) discard() {
	if b.exchange.ctx.Err() == nil {
		timer := time.AfterFunc(drainTime, func() {
			b.exchange.cancel(errDrained) // net/http's bodies cannot be closed while they are read
			b.source.Close()
		})
		defer timer.Stop()
		io.CopyN(io.Discard, b.source, drainBytes)
	}
	b.Close()
}

// switched is the connection of a 101. It lasts until it is closed: an end of what is read
// is not the end of what is written.
type switched struct {
	body *body
	conn io.ReadWriteCloser
}

func (s *switched) Read(p []byte) (int, error)  { return s.conn.Read(p) }
func (s *switched) Write(p []byte) (int, error) { return s.conn.Write(p) }
func (s *switched) Close() error                { return s.body.Close() }

func (s *switched) CloseWrite() error {
	if c, ok := s.conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return http.ErrNotSupported
}
