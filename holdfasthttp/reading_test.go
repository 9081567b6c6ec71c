package holdfasthttp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Rule 3: the timeout bounds the time to the header, and the body arrives whole.
func TestStreamOutlastsTimeout(t *testing.T) {
	const pieces, size = 32, 16 << 10
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			server, base := serve(t, protocol, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					return
				}
				for i := range pieces {
					w.Write(bytes.Repeat([]byte{byte(i)}, size))
					http.NewResponseController(w).Flush()
					time.Sleep(2 * time.Second / pieces)
				}
			})
			slots := bulkhead.New(1)
			pipeline := holdfast.Compose(
				timeout.New(50*time.Millisecond), slots, fast(retry.Attempts(10)), timeout.New(time.Second, timeout.Name("total")),
			)
			do(t, &http.Client{Transport: base}, http.MethodHead, server.URL, nil) // a handshake takes long under -race
			client := &http.Client{Transport: holdfasthttp.NewTransport(base, pipeline)}
			resp := do(t, client, http.MethodGet, server.URL, nil)
			got := readAll(t, resp)
			if len(got) != pieces*size || got[len(got)-1] != pieces-1 {
				t.Errorf("%d bytes arrived, want %d", len(got), pieces*size)
			}
			if n := slots.Stats().InFlight; n != 0 {
				t.Errorf("%d slots taken, want 0", n)
			}
		})
	}
}

// slow answers its header at once where path is /body, and never ends.
func slow(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // or the server does not see the client leave
	if r.URL.Path == "/body" {
		io.WriteString(w, "begin")
		http.NewResponseController(w).Flush()
	}
	<-r.Context().Done()
}

func TestTimeoutToTheHeader(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server, base := serve(t, protocol, slow)
			pipeline := holdfast.Compose(timeout.New(30*time.Millisecond), fast(retry.Attempts(2)))
			client := &http.Client{Transport: holdfasthttp.NewTransport(base, pipeline)}
			_, err := client.Get(server.URL)
			exhausted, _ := errors.AsType[*retry.ExhaustedError](err)
			if exhausted == nil || exhausted.Attempts != 2 || !errors.Is(err, timeout.ErrExceeded) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%v", err)
			}
			if u, ok := errors.AsType[*url.Error](err); !ok || !u.Timeout() {
				t.Errorf("%v is no timeout to http.Client", err)
			}
		})
	}
}

// Rule 3: reading the body is bounded by the caller's context; closing early releases.
func TestBodyEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(resp *http.Response, cancel func()) error
		want error
	}{
		{"closed early", func(resp *http.Response, _ func()) error { return resp.Body.Close() }, nil},
		{"closed twice", func(resp *http.Response, _ func()) error {
			return errors.Join(resp.Body.Close(), resp.Body.Close())
		}, nil},
		{"caller's deadline", func(resp *http.Response, _ func()) error {
			_, err := io.ReadAll(resp.Body)
			return err
		}, context.DeadlineExceeded},
		{"caller cancels", func(resp *http.Response, cancel func()) error {
			time.AfterFunc(10*time.Millisecond, cancel)
			_, err := io.ReadAll(resp.Body)
			return err
		}, context.Canceled},
	}
	for _, protocol := range protocols {
		for _, tt := range tests {
			t.Run(protocol+"/"+tt.name, func(t *testing.T) {
				server, base := serve(t, protocol, slow)
				slots := bulkhead.New(1)
				pipeline := holdfast.Compose(timeout.New(time.Minute), slots)
				client := &http.Client{Transport: holdfasthttp.NewTransport(base, pipeline)}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.want == context.DeadlineExceeded {
					ctx, cancel = context.WithTimeout(ctx, 600*time.Millisecond)
					defer cancel()
				}
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/body", nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				if n := slots.Stats().InFlight; n != 1 {
					t.Errorf("%d slots taken, want 1", n)
				}
				err = tt.end(resp, cancel)
				if !errors.Is(err, tt.want) {
					t.Errorf("%v, want %v", err, tt.want)
				}
				if late, ok := err.(interface{ Timeout() bool }); (ok && late.Timeout()) != (tt.want == context.DeadlineExceeded) {
					t.Errorf("%v: a timeout: %t", err, ok)
				}
				if n := slots.Stats().InFlight; n != 0 {
					t.Errorf("%d slots taken at the end, want 0", n)
				}
				resp.Body.Close()
			})
		}
	}
}

// Why the caller left is known to whoever asks, before the header and after it.
func TestCauseOfTheCallersEnd(t *testing.T) {
	why := errors.New("the user closed the page")
	for _, protocol := range protocols {
		for _, path := range []string{"/", "/body"} {
			t.Run(protocol+path, func(t *testing.T) {
				server, base := serve(t, protocol, slow)
				ctx, cancel := context.WithCancelCause(t.Context())
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
				client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(time.Minute), fast()))}
				resp, err := client.Do(req)
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				if !errors.Is(err, context.Canceled) || !errors.Is(err, why) || strings.Count(err.Error(), why.Error()) != 1 {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

func TestBodyTimeout(t *testing.T) {
	const limit = 200 * time.Millisecond // longer than a busy machine stalls
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server, base := serve(t, protocol, slow)
			slots := bulkhead.New(1)
			client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(slots),
				holdfasthttp.BodyTimeout(limit))}
			resp := do(t, client, http.MethodGet, server.URL+"/body", nil)
			got, err := io.ReadAll(resp.Body)
			late, ok := errors.AsType[*holdfasthttp.BodyTimeoutError](err)
			if string(got) != "begin" || !ok || !errors.Is(err, holdfasthttp.ErrBodyTimeout) ||
				!errors.Is(err, context.DeadlineExceeded) || !late.Timeout() || late.Limit != limit {
				t.Errorf("read %q, %v", got, err)
			}
			if n := slots.Stats().InFlight; n != 0 {
				t.Errorf("%d slots taken at the end, want 0", n)
			}
			resp.Body.Close()
		})
	}
	t.Run("a slow reader is no slow server", func(t *testing.T) {
		server, base := serve(t, "HTTP/1.1", func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				io.WriteString(w, "begin")
				http.NewResponseController(w).Flush()
			}
		})
		client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(), holdfasthttp.BodyTimeout(limit))}
		resp := do(t, client, http.MethodGet, server.URL, nil)
		defer resp.Body.Close()
		for range 3 {
			if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(limit + limit/4)
		}
		if _, err := resp.Body.Read(make([]byte, 5)); err != io.EOF {
			t.Errorf("%v, want EOF", err)
		}
	})
}

// A policy that knows nothing of bodies cancels its context when the call returns.
func TestForeignTimeoutDoesNotCutTheBody(t *testing.T) {
	naive := policy.Func(func(next policy.Handler) policy.Handler {
		return func(ctx context.Context, call policy.Call) (any, error) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			return next(ctx, call)
		}
	})
	server, base := serve(t, "HTTP/1.1", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "begin")
		http.NewResponseController(w).Flush()
		time.Sleep(20 * time.Millisecond)
		io.WriteString(w, " end")
	})
	client := &http.Client{Transport: holdfasthttp.NewTransport(base, holdfast.Compose(naive))}
	if got := readAll(t, do(t, client, http.MethodGet, server.URL, nil)); got != "begin end" {
		t.Errorf("read %q", got)
	}
}

// A 101 is a connection, which the caller may write to, and holds its slot until Close.
func TestSwitchingProtocols(t *testing.T) {
	server, base := serve(t, "HTTP/1.1", func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		io.WriteString(conn, strings.ToUpper(line))
		io.Copy(io.Discard, rw)
	})
	slots := bulkhead.New(1)
	transport := holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(50*time.Millisecond), slots, fast()),
		holdfasthttp.BodyTimeout(10*time.Millisecond))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("status %d, body %T", resp.StatusCode, resp.Body)
	}
	time.Sleep(100 * time.Millisecond) // longer than every limit
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "HELLO\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v, want EOF", err)
	}
	if n := slots.Stats().InFlight; n != 1 {
		t.Errorf("%d slots taken, want 1", n)
	}
	if err := conn.Close(); err != nil || slots.Stats().InFlight != 0 {
		t.Errorf("%v, %d slots taken at the end", err, slots.Stats().InFlight)
	}
}
