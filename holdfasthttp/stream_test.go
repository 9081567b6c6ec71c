package holdfasthttp_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/policy"
	"github.com/holdfast-go/holdfast/policytest"
	"github.com/holdfast-go/holdfast/timeout"
)

// Rule 8: what is committed is not replaced, and the policies are told the verdict.
func TestCommittedIsNotReplaced(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		code    int
		body    string
		events  []policy.Kind // of the timeout
		failed  bool
	}{
		{"written before the limit", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "begin")
			hang(w, r)
		}, 200, "begin", []policy.Kind{policy.TimeoutExceeded}, true},
		{"header before the limit", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(202)
			hang(w, r)
		}, 202, "", []policy.Kind{policy.TimeoutExceeded}, true},
		{"flushed before the limit", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Mine", "1")
			http.NewResponseController(w).Flush()
			hang(w, r)
		}, 200, "", []policy.Kind{policy.TimeoutExceeded}, true},
		{"early hints are no answer", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			hang(w, r)
		}, 503, "The request took too long.\n", []policy.Kind{policy.TimeoutExceeded}, true},
		{"a late success", func(w http.ResponseWriter, r *http.Request) {
			hang(w, r)
			io.WriteString(w, "late")
		}, 200, "late", []policy.Kind{policy.TimeoutExceeded}, false},
		{"the handler's own word", func(w http.ResponseWriter, r *http.Request) {
			hang(w, r)
			http.Error(w, "sorry", http.StatusGatewayTimeout)
		}, 504, "sorry\n", []policy.Kind{policy.TimeoutExceeded}, true},
	}
	for _, protocol := range protocols {
		for _, tt := range tests {
			t.Run(protocol+"/"+tt.name, func(t *testing.T) {
				limit, b := timeout.New(30*time.Millisecond), breaker.New("b", breaker.ConsecutiveFailures(1))
				recorder := policytest.Record(limit)
				client, url := guarded(t, protocol, tt.handler, limit, b)
				resp := do(t, client, http.MethodGet, url, nil)
				if got := readAll(t, resp); resp.StatusCode != tt.code || got != tt.body {
					t.Errorf("status %d, %q; want %d, %q", resp.StatusCode, got, tt.code, tt.body)
				}
				if got := recorder.Kinds(); !slices.Equal(got, tt.events) {
					t.Errorf("events %v, want %v", got, tt.events)
				}
				if got := b.State() == breaker.Open; got != tt.failed {
					t.Errorf("failed: %t, want %t", got, tt.failed)
				}
			})
		}
	}
}

// Rule 8: an abandoned handler cannot write any more, and its part is not the whole.
func TestAbandonedHandler(t *testing.T) {
	for _, protocol := range protocols {
		for _, committed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/committed=%t", protocol, committed), func(t *testing.T) {
				answered, ended := make(chan struct{}), make(chan struct{})
				limit, slots := timeout.New(30*time.Millisecond, timeout.Abandon()), bulkhead.New(1)
				client, url := guarded(t, protocol, func(w http.ResponseWriter, r *http.Request) {
					defer close(ended)
					if committed {
						io.WriteString(w, "begin")
						http.NewResponseController(w).Flush()
					}
					for range 1000 { // while the answer is written
						w.Header().Set("X-Mine", "1")
						if committed {
							w.Write(nil)
						}
					}
					<-answered
					_, err := io.WriteString(w, "late")
					_, copied := w.(io.ReaderFrom).ReadFrom(strings.NewReader("late"))
					w.WriteHeader(http.StatusTeapot)
					controller := http.NewResponseController(w)
					_, _, hijacked := controller.Hijack()
					for _, err := range []error{err, copied, controller.Flush(), hijacked} {
						if !errors.Is(err, http.ErrHandlerTimeout) {
							t.Errorf("%v, want ErrHandlerTimeout", err)
						}
					}
					if err := controller.SetWriteDeadline(time.Now()); !errors.Is(err, http.ErrNotSupported) {
						t.Errorf("%v, want ErrNotSupported", err)
					}
				}, limit, slots)
				resp, err := client.Get(url)
				if err == nil {
					var body []byte
					body, err = io.ReadAll(resp.Body)
					if resp.Body.Close(); string(body) == "begin" && err == nil {
						t.Error("the part looks like the whole")
					}
				}
				if !committed && (err != nil || resp.StatusCode != 503) {
					t.Errorf("%v, %v", resp, err)
				}
				if n := slots.Stats().InFlight; n != 1 {
					t.Errorf("%d slots taken, want 1", n)
				}
				close(answered)
				<-ended
				eventually(t, "the slot is free", func() bool { return slots.Stats().InFlight == 0 })
			})
		}
	}
}

// Rule 8: events arrive one by one, as they are flushed.
func TestServerSentEvents(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			next := make(chan string)
			client, url := guarded(t, protocol, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for word := range next {
					fmt.Fprintf(w, "data: %s\n\n", word)
					w.(http.Flusher).Flush()
				}
			}, timeout.New(time.Minute), bulkhead.New(1), breaker.New("b"), fast())
			go func() { next <- "first" }()
			resp := do(t, client, http.MethodGet, url, nil)
			defer resp.Body.Close()
			lines := bufio.NewReader(resp.Body)
			for _, word := range []string{"first", "second", "third"} {
				if word != "first" {
					next <- word
				}
				line, err := lines.ReadString('\n')
				if err != nil || line != "data: "+word+"\n" {
					t.Fatalf("%q, %v", line, err)
				}
				lines.ReadString('\n')
			}
			close(next)
		})
	}
}

// Rule 8: an upgrade passes through both sides.
func TestUpgradeThroughBothSides(t *testing.T) {
	slots := bulkhead.New(1)
	server, base := serve(t, "HTTP/1.1", holdfasthttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(conn, strings.ToUpper(line))
		}
	}), holdfast.Compose(timeout.New(20*time.Millisecond), slots, breaker.New("b"))).ServeHTTP)
	client := holdfasthttp.NewTransport(base, holdfast.Compose(timeout.New(time.Minute), bulkhead.New(1), fast()))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	resp, err := client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	conn := resp.Body.(io.ReadWriteCloser)
	lines := bufio.NewReader(conn)
	for _, word := range []string{"one\n", "two\n"} {
		time.Sleep(30 * time.Millisecond) // longer than the server's limit
		io.WriteString(conn, word)
		if got, err := lines.ReadString('\n'); got != strings.ToUpper(word) || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	conn.Close()
	eventually(t, "the server's slot is free", func() bool { return slots.Stats().InFlight == 0 })
}

// Rule 8: 1xx responses pass, and so do their headers.
func TestInformationalResponses(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			client, url := guarded(t, protocol, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Link", "</style.css>")
				w.WriteHeader(http.StatusEarlyHints)
				w.Header().Del("Link")
				w.WriteHeader(http.StatusCreated)
			}, timeout.New(time.Minute))
			var hints []string
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
					hints = append(hints, fmt.Sprint(code, h.Get("Link")))
					return nil
				},
			})
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			client.Transport = holdfasthttp.NewTransport(client.Transport, holdfast.Compose(timeout.New(time.Minute), fast()))
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			readAll(t, resp)
			if !slices.Equal(hints, []string{"103</style.css>"}) || resp.StatusCode != 201 || resp.Header.Get("Link") != "" {
				t.Errorf("hints %v, status %d, header %v", hints, resp.StatusCode, resp.Header)
			}
		})
	}
}

// Rule 8: what http.ResponseController and type assertions find.
func TestResponseController(t *testing.T) {
	content := strings.Repeat("x", 100<<10)
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			client, url := guarded(t, protocol, func(w http.ResponseWriter, _ *http.Request) {
				c := http.NewResponseController(w)
				if err := errors.Join(c.SetReadDeadline(time.Now().Add(time.Minute)), c.SetWriteDeadline(time.Now().Add(time.Minute)), c.EnableFullDuplex()); err != nil {
					t.Error(err)
				}
				conn, _, err := c.Hijack()
				if protocol == "HTTP/2.0" && !errors.Is(err, http.ErrNotSupported) || protocol == "HTTP/1.1" && err != nil {
					t.Errorf("Hijack: %v", err)
				}
				if conn != nil {
					conn.Close()
				}
			}, timeout.New(time.Minute))
			if resp, err := client.Get(url); err == nil {
				readAll(t, resp)
			}

			client, url = guarded(t, protocol, func(w http.ResponseWriter, _ *http.Request) {
				if n, err := io.Copy(w, strings.NewReader(content)); n != int64(len(content)) || err != nil {
					t.Errorf("copied %d, %v", n, err)
				}
			}, timeout.New(time.Minute, timeout.Abandon()))
			if got := readAll(t, do(t, client, http.MethodGet, url, nil)); got != content {
				t.Errorf("%d bytes", len(got))
			}
		})
	}
	t.Run("ReaderFrom", func(t *testing.T) {
		inner := &readerFrom{ResponseRecorder: httptest.NewRecorder()}
		holdfasthttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.Copy(w, io.LimitReader(strings.NewReader(content), 10))
		}), holdfast.Compose(timeout.New(time.Minute), bulkhead.New(1), breaker.New("b"), fast())).ServeHTTP(inner, httptest.NewRequest(http.MethodGet, "/", nil))
		if inner.calls != 1 {
			t.Errorf("%d calls of ReadFrom", inner.calls)
		}
	})
}

type readerFrom struct {
	*httptest.ResponseRecorder
	calls int
}

func (r *readerFrom) ReadFrom(src io.Reader) (int64, error) {
	r.calls++
	return io.Copy(r.ResponseRecorder, src)
}

// Headers that were set before, trailers, and a header that is taken back.
func TestHandlerHeaders(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			inner := holdfasthttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				h := w.Header()
				h.Del("X-Gone")
				h.Set("X-Mine", "1")
				h.Set("Trailer", "X-Sum, X-Other")
				io.WriteString(w, "hello")
				h.Set("X-Late", "1")
				h.Set("X-Sum", "42")
				h.Set(http.TrailerPrefix+"X-Free", "43")
			}), holdfast.Compose(timeout.New(time.Minute)))
			server, base := serve(t, protocol, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Outer", "1")
				w.Header().Set("X-Gone", "1")
				inner.ServeHTTP(w, r)
			})
			resp := do(t, &http.Client{Transport: base}, http.MethodGet, server.URL, nil)
			readAll(t, resp)
			h := resp.Header
			if h.Get("X-Outer") != "1" || h.Get("X-Mine") != "1" || h.Get("X-Gone") != "" || h.Get("X-Late") != "" {
				t.Errorf("header %v", h)
			}
			if resp.Trailer.Get("X-Sum") != "42" || resp.Trailer.Get("X-Free") != "43" {
				t.Errorf("trailer %v", resp.Trailer)
			}
		})
	}
}
