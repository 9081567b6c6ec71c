package holdfasthttp_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fast retries without a wait.
func fast(opts ...retry.Option) *retry.Retry {
	return retry.New(append([]retry.Option{retry.Constant(0)}, opts...)...)
}

// protocols are what rules hold over: HTTP/1.1, and HTTP/2 over TLS.
var protocols = []string{"HTTP/1.1", "HTTP/2.0"}

// serve runs handler on 127.0.0.1. The transport is the server's own client's, and both
// are gone when the test ends.
func serve(t testing.TB, protocol string, handler http.HandlerFunc) (*httptest.Server, *http.Transport) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if protocol == "HTTP/2.0" {
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
	}
	base := server.Client().Transport.(*http.Transport)
	t.Cleanup(func() {
		base.CloseIdleConnections()
		server.Close()
	})
	return server, base
}

// counted counts the connections that base has open.
type counted struct {
	mu        sync.Mutex
	open, all int
}

func count(base *http.Transport) *counted {
	c := &counted{}
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c.add(1, 1)
		return &countedConn{Conn: conn, of: c}, nil
	}
	return c
}

func (c *counted) add(open, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += open
	c.all += all
}

func (c *counted) now() (open, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, c.all
}

type countedConn struct {
	net.Conn
	of   *counted
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.of.add(-1, 0) })
	return c.Conn.Close()
}

// roundTripper is a base transport made of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// closing counts how often a body is closed.
type closing struct {
	io.Reader
	mu     sync.Mutex
	closes int
}

func (c *closing) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closes++
	return nil
}

func (c *closing) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closes
}

// eventually waits for what happens on a goroutine of the server or of package http.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not within 5s", what)
}

func do(t testing.TB, client *http.Client, method, url string, body io.Reader) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func readAll(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return string(b)
}
