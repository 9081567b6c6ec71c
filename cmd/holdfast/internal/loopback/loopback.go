// Package loopback runs HTTP services on 127.0.0.1, and the clients that talk to
// them.
package loopback

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// grace is how long a closing server waits for requests that are being answered.
	grace = 5 * time.Second
	// hush is how long a new connection may be silent. Clients open some in advance and
	// use them late: to close one just then would lose an order.
	hush = time.Minute
)

// A Server is an HTTP service that listens on a port of 127.0.0.1.
type Server struct {
	URL string // "http://127.0.0.1:3001"

	http http.Server
	done chan struct{}
}

// Serve begins to serve handler on port, on a free one if port is 0. The caller must
// call Close.
func Serve(port int, handler http.Handler) (*Server, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL:  "http://" + l.Addr().String(),
		http: http.Server{Handler: handler, ReadHeaderTimeout: hush},
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // always an error: ErrServerClosed after Close
	}()
	return s, nil
}

// Close stops listening, lets requests end that are being answered, closes all
// connections, and returns when nothing of the server runs any more.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // a client that keeps us past the grace is cut off
	}
	<-s.done
}

// NewClient returns a client over a transport of its own. Its CloseIdleConnections must
// be called in the end.
func NewClient() *http.Client { return &http.Client{Transport: NewTransport()} }

// NewTransport returns a transport that keeps a connection for each of many requests at
// once, and asks no proxy. Its CloseIdleConnections must be called in the end.
func NewTransport() *http.Transport { return &http.Transport{MaxIdleConnsPerHost: 128} }

// Call sends a request without a body and decodes the JSON answer into reply, if
// reply is not nil. It returns the answer's status code, and an error if there was no
// such answer: a *url.Error, also where the answer is not the JSON expected.
func Call(ctx context.Context, c *http.Client, method, address string, reply any) (code int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if reply == nil {
		return resp.StatusCode, nil
	}
	if err := json.NewDecoder(resp.Body).Decode(reply); err != nil {
		err = fmt.Errorf("answer %d is not the JSON expected: %w", resp.StatusCode, err)
		return resp.StatusCode, &url.Error{Op: method, URL: address, Err: err}
	}
	return resp.StatusCode, nil
}

// Reply answers a request with value as JSON.
func Reply(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // fails only if the client has hung up
}

// A Problem is the body of an answer that is an error.
type Problem struct {
	Error string `json:"error"`
}
