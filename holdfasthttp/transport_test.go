package holdfasthttp_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/holdfasthttp"
	"github.com/holdfast-go/holdfast/timeout"
)

// bodies notes what a server was sent, and answers with codes, the last one for ever.
type bodies struct {
	codes  []int
	header http.Header

	mu   sync.Mutex
	sent []string
	keys []string
}

func (b *bodies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	b.mu.Lock()
	b.sent = append(b.sent, string(body))
	b.keys = append(b.keys, r.Header.Get("Idempotency-Key"))
	code := b.codes[min(len(b.sent), len(b.codes))-1]
	b.mu.Unlock()
	for key, values := range b.header {
		w.Header()[key] = values
	}
	w.WriteHeader(code)
	io.WriteString(w, "answer")
}

func (b *bodies) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent
}

func TestFullPipeline(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			log := &bodies{codes: []int{503, 503, 200}}
			server, base := serve(t, protocol, log.ServeHTTP)
			slots := bulkhead.New(1)
			pipeline := holdfast.Compose(timeout.New(5*time.Second), slots, fast())
			client := &http.Client{Transport: holdfasthttp.NewTransport(base, pipeline)}
			for range 5 {
				resp := do(t, client, http.MethodPut, server.URL, strings.NewReader("hello"))
				if got := slots.Stats().InFlight; got != 1 {
					t.Errorf("%d slots taken while the body is open, want 1", got)
				}
				if got := readAll(t, resp); got != "answer" || resp.StatusCode != 200 || resp.Proto != protocol {
					t.Fatalf("%s %d %q", resp.Proto, resp.StatusCode, got)
				}
				if got := slots.Stats().InFlight; got != 0 {
					t.Errorf("%d slots taken afterwards, want 0", got)
				}
			}
			if got := strings.Join(log.seen(), " "); got != strings.TrimSpace(strings.Repeat("hello ", 7)) {
				t.Errorf("the server was sent %q", got)
			}
		})
	}
}
