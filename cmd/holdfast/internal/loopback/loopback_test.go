package loopback

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCall(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /json", func(w http.ResponseWriter, _ *http.Request) { Reply(w, 202, Problem{Error: "none"}) })
	mux.HandleFunc("GET /text", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	s, err := Serve(0, mux)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := NewClient()
	defer c.CloseIdleConnections()

	var p Problem
	if code, err := Call(t.Context(), c, http.MethodGet, s.URL+"/json", &p); code != 202 || err != nil || p.Error != "none" {
		t.Errorf("/json: %d %+v, %v", code, p, err)
	}
	if code, err := Call(t.Context(), c, http.MethodGet, s.URL+"/json", nil); code != 202 || err != nil {
		t.Errorf("/json, body not wanted: %d, %v", code, err)
	}
	if code, err := Call(t.Context(), c, http.MethodGet, s.URL+"/text", &p); code != 200 || err == nil {
		t.Errorf("/text: %d, %v, want an error beside the code", code, err)
	}
	if _, err := Call(t.Context(), c, "NO METHOD", s.URL, nil); err == nil {
		t.Error("a bad method is no error")
	}
}

func TestServeOnThisMachineOnly(t *testing.T) {
	s, err := Serve(0, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if u, err := url.Parse(s.URL); err != nil || u.Hostname() != "127.0.0.1" {
		t.Errorf("listens on %s", s.URL)
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	n, _ := strconv.Atoi(port)
	if _, err := Serve(n, http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("error %v, want one that says in use", err)
	}
}

func TestCloseLetsRequestsEnd(t *testing.T) {
	entered := make(chan struct{})
	s, err := Serve(0, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		time.Sleep(50 * time.Millisecond)
		Reply(w, 200, Problem{})
	}))
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient()
	var code atomic.Int64
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		got, _ := Call(t.Context(), c, http.MethodGet, s.URL, nil)
		code.Store(int64(got))
	}()
	<-entered
	s.Close()
	<-answered
	if got := code.Load(); got != 200 {
		t.Errorf("the request that ran was answered %d, want 200", got)
	}
	if _, err := Call(t.Context(), c, http.MethodGet, s.URL, nil); err == nil {
		t.Error("a closed server answers")
	}
}
