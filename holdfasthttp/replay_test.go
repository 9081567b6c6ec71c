package holdfasthttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Rule 1: an attempt whose base transport still reads takes nothing from the next.
func TestEarlierAttemptStillReads(t *testing.T) {
	content := bytes.Repeat([]byte("abcdefgh"), 4<<10)
	for _, getBody := range []bool{false, true} {
		t.Run(fmt.Sprintf("GetBody=%t", getBody), func(t *testing.T) {
			var late sync.WaitGroup
			var got []byte
			attempts := 0
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				if attempts++; attempts < 3 { // answers early, and reads on
					late.Go(func() {
						defer r.Body.Close()
						for buffer := make([]byte, 7); ; {
							if _, err := r.Body.Read(buffer); err != nil {
								return
							}
						}
					})
					return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
				}
				defer r.Body.Close()
				var err error
				got, err = io.ReadAll(r.Body)
				return &http.Response{StatusCode: 200, Body: http.NoBody}, err
			})
			original := &closing{Reader: bytes.NewReader(content)}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1/", original)
			if err != nil {
				t.Fatal(err)
			}
			if getBody {
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
			}
			if _, err := holdfasthttp.NewTransport(base, holdfast.Compose(fast())).RoundTrip(req); err != nil {
				t.Fatal(err)
			}
			late.Wait()
			if !bytes.Equal(got, content) {
				t.Errorf("the last attempt read %d bytes, want %d", len(got), len(content))
			}
			if n := original.count(); n != 1 {
				t.Errorf("closed %d times, want once", n)
			}
		})
	}
}

// Rule 1: what is left of an attempt cannot spend the body that the next was promised.
func TestEarlierAttemptReadsPastTheLimit(t *testing.T) {
	content := bytes.Repeat([]byte("abcdefgh"), 32<<10)
	var earlier io.ReadCloser
	var got []byte
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		if earlier == nil {
			earlier = r.Body
			r.Body.Read(make([]byte, 1))
			return &http.Response{StatusCode: 503, Body: io.NopCloser(strings.NewReader("sorry"))}, nil
		}
		defer r.Body.Close()
		var err error
		got, err = io.ReadAll(r.Body)
		return &http.Response{StatusCode: 200, Body: http.NoBody}, err
	})
	r := fast(retry.OnRetry(func(context.Context, retry.Attempt) {
		io.ReadFull(earlier, make([]byte, 20<<10))
	}))
	original := &closing{Reader: bytes.NewReader(content)}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1/", original)
	if err != nil {
		t.Fatal(err)
	}
	transport := holdfasthttp.NewTransport(base, holdfast.Compose(r), holdfasthttp.MaxReplay(4))
	if resp, err := transport.RoundTrip(req); err != nil || resp.StatusCode != 200 || !bytes.Equal(got, content) {
		t.Errorf("%v, %v; the last attempt read %d bytes, want %d", resp, err, len(got), len(content))
	}
	if err := earlier.Close(); err != nil || original.count() != 1 {
		t.Errorf("%v, closed %d times, want once", err, original.count())
	}
}

// Rule 1: nor does a read of it that returns late take anything from the next.
func TestEarlierAttemptsReadReturnsLate(t *testing.T) {
	content := bytes.Repeat([]byte("abcdefgh"), 32<<10)
	source, begun, proceed := bytes.NewReader(content), make(chan struct{}), make(chan struct{})
	var once sync.Once
	original := io.NopCloser(readFunc(func(p []byte) (int, error) {
		once.Do(func() {
			close(begun)
			<-proceed
		})
		return source.Read(p)
	}))
	var late sync.WaitGroup
	var got []byte
	attempts := 0
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		if attempts++; attempts == 1 {
			late.Go(func() { r.Body.Read(make([]byte, 100)) })
			<-begun
			return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
		}
		close(proceed)
		late.Wait()
		defer r.Body.Close()
		var err error
		got, err = io.ReadAll(r.Body)
		return &http.Response{StatusCode: 200, Body: http.NoBody}, err
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1/", original)
	if err != nil {
		t.Fatal(err)
	}
	transport := holdfasthttp.NewTransport(base, holdfast.Compose(fast()), holdfasthttp.MaxReplay(4))
	if _, err := transport.RoundTrip(req); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%v; the last attempt read %d bytes, want %d", err, len(got), len(content))
	}
}

// Rule 1: nor can it have the whole of it kept.
func TestEarlierAttemptIsStopped(t *testing.T) {
	var read int64
	var earlier io.ReadCloser
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		earlier = r.Body
		return &http.Response{StatusCode: 503, Body: io.NopCloser(strings.NewReader("sorry"))}, nil
	})
	endless := io.NopCloser(readFunc(func(p []byte) (int, error) { return len(p), nil }))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1/", endless)
	if err != nil {
		t.Fatal(err)
	}
	r := fast(retry.Attempts(2), retry.OnRetry(func(context.Context, retry.Attempt) {
		read, err = io.Copy(io.Discard, earlier)
	}))
	if _, failed := holdfasthttp.NewTransport(base, holdfast.Compose(r)).RoundTrip(req); failed != nil {
		t.Error(failed)
	}
	if err == nil || read > 256<<10 {
		t.Errorf("read %d bytes, %v", read, err)
	}
}

// Rule 1: a server that answers before it has read the body, over real connections.
func TestEarlyAnswer(t *testing.T) {
	content := strings.Repeat("x", 1<<20)
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			log := &bodies{codes: []int{200}}
			n := 0
			server, base := serve(t, protocol, func(w http.ResponseWriter, r *http.Request) {
				if n++; n < 3 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				log.ServeHTTP(w, r)
			})
			client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(fast()))}
			resp := do(t, client, http.MethodPut, server.URL, strings.NewReader(content))
			readAll(t, resp)
			if got := log.seen(); resp.StatusCode != 200 || len(got) != 1 || got[0] != content {
				t.Errorf("status %d, bodies of %v bytes", resp.StatusCode, lengths(got))
			}
		})
	}
}

// Nothing is read before it is sent: the caller may write what it makes of the response.
func TestBothDirections(t *testing.T) {
	server, base := serve(t, "HTTP/2.0", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		for buffer := make([]byte, 16); ; {
			n, err := r.Body.Read(buffer)
			w.Write(bytes.ToUpper(buffer[:n]))
			http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	})
	client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(5*time.Second), fast()))}
	reader, writer := io.Pipe()
	resp := do(t, client, http.MethodPut, server.URL, reader)
	for _, word := range []string{"one", "two", "three"} {
		if _, err := io.WriteString(writer, word); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(word))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != strings.ToUpper(word) {
			t.Fatalf("%q came back as %q, %v", word, got, err)
		}
	}
	writer.Close()
	if got := readAll(t, resp); got != "" {
		t.Errorf("%q at the end", got)
	}
}

// What the caller's reader cannot deliver is neither the server's fault nor tried again.
func TestBodyThatCannotBeRead(t *testing.T) {
	broken := errors.New("disk on fire")
	body := func() io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader("hel"), readFunc(func([]byte) (int, error) { return 0, broken })))
	}
	for _, getBody := range []bool{false, true} {
		t.Run(fmt.Sprintf("GetBody=%t", getBody), func(t *testing.T) {
			server, base := serve(t, "HTTP/1.1", (&bodies{codes: []int{200}}).ServeHTTP)
			b := breaker.New("b", breaker.ConsecutiveFailures(1))
			attempts := 0
			counting := roundTripper(func(r *http.Request) (*http.Response, error) {
				attempts++
				return base.RoundTrip(r)
			})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL, body())
			if err != nil {
				t.Fatal(err)
			}
			if getBody {
				req.GetBody = func() (io.ReadCloser, error) { return body(), nil }
			}
			_, err = holdfasthttp.NewTransport(counting, holdfast.Compose(b, fast())).RoundTrip(req)
			if !errors.Is(err, broken) || attempts != 1 || b.State() != breaker.Closed {
				t.Errorf("%v after %d attempts, circuit %v", err, attempts, b.State())
			}
		})
	}
	t.Run("GetBody fails", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1/", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		req.GetBody = func() (io.ReadCloser, error) { return nil, broken }
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
		})
		_, err = holdfasthttp.NewTransport(base, holdfast.Compose(fast(retry.Attempts(9)))).RoundTrip(req)
		if exhausted, ok := errors.AsType[*retry.ExhaustedError](err); !errors.Is(err, broken) || !ok || exhausted.Attempts != 2 {
			t.Errorf("%v", err)
		}
	})
}

// A body that net/http closes while it is read is not one that cannot be read.
func TestBodyClosedUnderItsReader(t *testing.T) {
	attempts := 0
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		attempts++
		r.Body.Close()
		if _, err := r.Body.Read(make([]byte, 1)); err == nil {
			t.Error("a closed file can be read")
		}
		return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
	})
	open := func() (io.ReadCloser, error) { return os.Open("replay_test.go") }
	body, err := open()
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1/", body)
	if err != nil {
		t.Fatal(err)
	}
	req.GetBody = open
	if _, err := holdfasthttp.NewTransport(base, holdfast.Compose(fast())).RoundTrip(req); err != nil || attempts != 3 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// A body that nobody has read when the connection could not be made can be sent still.
func TestBodyOutlivesFailedDial(t *testing.T) {
	log := &bodies{codes: []int{200}}
	server, base := serve(t, "HTTP/1.1", log.ServeHTTP)
	dials := 0
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials++; dials < 3 {
			address = "127.0.0.1:1"
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(fast()), holdfasthttp.MaxReplay(0))}
	body := &closing{Reader: strings.NewReader("hello")}
	resp := do(t, client, http.MethodPost, server.URL, body)
	readAll(t, resp)
	if got := log.seen(); !slices.Equal(got, []string{"hello"}) || body.count() != 1 {
		t.Errorf("the server was sent %q, the body closed %d times", got, body.count())
	}
}

// A policy that repeats without asking the Judge gets an error, not an empty body.
func TestSpentBodyIsNotSentAgain(t *testing.T) {
	twice := policy.Func(func(next policy.Handler) policy.Handler {
		return func(ctx context.Context, call policy.Call) (any, error) {
			value, _ := next(ctx, call)
			policy.Discard(call, value)
			return next(ctx, call)
		}
	})
	log := &bodies{codes: []int{200}}
	server, base := serve(t, "HTTP/1.1", log.ServeHTTP)
	client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(twice))}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, &closing{Reader: strings.NewReader("hello")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(req); !errors.Is(err, holdfasthttp.ErrNotReplayable) || len(log.seen()) != 1 {
		t.Errorf("%v; the server was sent %q", err, log.seen())
	}
}
