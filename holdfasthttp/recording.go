package holdfasthttp

import (
	"io"
	"net/http"
	"sync"
)

// A recording is the body of a request without GetBody. Whichever attempt is ahead reads
// the caller's reader, and what it reads is kept for the others. So nothing is read
// before it is sent, and a body that the caller writes while it reads the response works.
type recording struct {
	source io.ReadCloser
	turn   sync.Mutex // held while source is read; not needed to close it

	mu       sync.Mutex       // guards the fields below
	kept     []byte           // all that was read, unless spent
	length   int64            // of what was read
	spent    bool             // more was read than may be kept
	latest   *recordingReader // of the attempt that began last
	promised bool             // to another attempt, until that begins
	err      error            // of source, io.EOF too
	readers  int              // open ones
	over     bool             // no attempt follows
	closed   bool
}

func (r *recording) open(limit int64) (*attemptBody, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
		return nil, errOver
	case r.spent:
		return nil, ErrNotReplayable
	}
	r.readers++
	reader := &recordingReader{of: r, limit: limit}
	r.latest, r.promised = reader, false
	return &attemptBody{Reader: reader, close: reader.close}, nil
}

func (r *recording) renewal(limit int64) func() (io.ReadCloser, error) {
	if limit == 0 {
		return nil
	}
	return func() (io.ReadCloser, error) { return r.open(limit) }
}

func (r *recording) promise() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promised = !r.spent && (r.err == nil || r.err == io.EOF)
	return r.promised
}

func (r *recording) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil && r.err != io.EOF
}

func (r *recording) finish() {
	r.mu.Lock()
	r.over, r.promised = true, false
	r.mu.Unlock()
	r.closeUnused()
}

// closeUnused closes the source if nobody will read it any more.
func (r *recording) closeUnused() error {
	r.mu.Lock()
	unused := r.over && r.readers == 0 && !r.closed
	r.closed = r.closed || unused
	r.mu.Unlock()
	if !unused {
		return nil
	}
	return r.source.Close()
}

// advance reads the source for a reader, unless another has read on meanwhile: then it
// returns nothing, and the reader looks again.
func (r *recording) advance(p []byte, reader *recordingReader) (int, error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.mu.Lock()
	passed := r.length > reader.offset || r.err != nil
	stop := r.owesLocked(reader) && r.length-leftover >= reader.limit
	r.mu.Unlock()
	switch {
	case passed:
		return 0, nil
	case stop:
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := r.source.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	r.keepLocked(p[:n], reader)
	return n, err
}

// leftover is how much an attempt that is to be repeated may read above the limit, before
// its end has reached the base transport.
const leftover = 64 << 10

// owesLocked tells whether an attempt after reader's was promised the body, or reads it:
// then reader's must not spend it.
func (r *recording) owesLocked(reader *recordingReader) bool {
	return r.promised || r.latest != reader
}

func (r *recording) keepLocked(p []byte, reader *recordingReader) {
	r.length += int64(len(p))
	if r.spent = r.spent || r.length > reader.limit && !r.owesLocked(reader); r.spent {
		r.kept = nil
		return
	}
	r.kept = append(r.kept, p...)
}

// A recordingReader is one attempt's view of a recording.
type recordingReader struct {
	of     *recording
	limit  int64
	offset int64

	mu     sync.Mutex // guards closed
	closed bool
}

func (r *recordingReader) Read(p []byte) (int, error) {
	for len(p) > 0 {
		n, err, done := r.replay(p)
		if !done {
			n, err = r.of.advance(p, r)
		}
		r.offset += int64(n)
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}

// replay reads what others have read before.
func (r *recordingReader) replay(p []byte) (n int, err error, done bool) {
	if r.isClosed() {
		return 0, http.ErrBodyReadAfterClose, true
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	switch {
	case r.offset == r.of.length:
		return 0, r.of.err, r.of.err != nil
	case r.of.spent:
		return 0, ErrNotReplayable, true
	default:
		return copy(p, r.of.kept[r.offset:]), nil, true
	}
}

func (r *recordingReader) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

func (r *recordingReader) close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.of.mu.Lock()
	r.of.readers--
	r.of.mu.Unlock()
	return r.of.closeUnused()
}
