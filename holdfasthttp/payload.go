package holdfasthttp

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// A payload is the body of a call's request, of which each attempt reads a copy: the
// base transport of the attempt before may still be reading. The request's own body is
// closed once.
type payload interface {
	// open gives an attempt its body, nil where there is none, and keeps up to limit
	// bytes for the next.
	open(limit int64) (*attemptBody, error)
	// renewal is GetBody for an attempt's request, nil where there is none.
	renewal(limit int64) func() (io.ReadCloser, error)
	// promise tells whether another attempt is given the whole body, and sees to it that
	// this stays true.
	promise() bool
	// failed tells whether the caller's reader returned an error.
	failed() bool
	// finish says that no attempt follows.
	finish()
}

func payloadOf(req *http.Request) payload {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return noPayload{}
	case req.GetBody != nil:
		return &copies{original: req.Body, get: req.GetBody}
	default:
		return &recording{source: req.Body}
	}
}

type noPayload struct{}

func (noPayload) open(int64) (*attemptBody, error)            { return nil, nil }
func (noPayload) renewal(int64) func() (io.ReadCloser, error) { return nil }
func (noPayload) promise() bool                               { return true }
func (noPayload) failed() bool                                { return false }
func (noPayload) finish()                                     {}

// An attemptBody is what one attempt reads. It is closed once, however often Close is
// called: by the base transport, and after an error by us.
type attemptBody struct {
	io.Reader

	close  func() error
	once   sync.Once
	closed atomic.Bool // or about to be
	err    error
}

// Close implements io.Closer. A nil body has nothing to close.
func (b *attemptBody) Close() error {
	if b == nil {
		return nil
	}
	b.once.Do(func() {
		b.closed.Store(true)
		b.err = b.close()
	})
	return b.err
}

// copies are the bodies of a request with GetBody. The first attempt takes the original.
type copies struct {
	get    func() (io.ReadCloser, error)
	broken atomic.Bool // an original or copy could not be read

	mu       sync.Mutex    // guards the fields below
	original io.ReadCloser // nil once it was taken or closed
	over     bool
}

func (c *copies) open(int64) (*attemptBody, error) {
	body, err := c.take()
	if err != nil {
		return nil, err
	}
	if body == nil {
		if body, err = c.get(); err != nil {
			c.broken.Store(true)
			return nil, err
		}
	}
	b := &attemptBody{close: body.Close}
	b.Reader = readerFunc(func(p []byte) (int, error) {
		n, err := body.Read(p)
		if err != nil && err != io.EOF && !b.closed.Load() { // net/http closes a body under its reader
			c.broken.Store(true)
		}
		return n, err
	})
	return b, nil
}

func (c *copies) take() (io.ReadCloser, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, errOver
	}
	body := c.original
	c.original = nil
	return body, nil
}

func (c *copies) renewal(int64) func() (io.ReadCloser, error) { return c.get }
func (c *copies) promise() bool                               { return !c.broken.Load() }
func (c *copies) failed() bool                                { return c.broken.Load() }

func (c *copies) finish() {
	body, _ := c.take()
	if body != nil { // refused before any attempt
		body.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
