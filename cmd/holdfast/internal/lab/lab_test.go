package lab

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/loopback"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/order"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCloseAnswersOrdersThatWait(t *testing.T) {
	l, err := Start(Config{Slow: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	client := loopback.NewClient()
	defer client.CloseIdleConnections()
	if _, err := loopback.Call(t.Context(), client, http.MethodPost, l.PaymentURL()+"/admin/mode/slow", nil); err != nil {
		t.Fatal(err)
	}
	answered := make(chan order.Answer)
	go func() {
		var a order.Answer
		_, _ = loopback.Call(t.Context(), client, http.MethodPost, l.OrderURL()+"/orders/a", &a)
		answered <- a
	}()
	for l.Payment.Pending() == 0 {
		time.Sleep(time.Millisecond)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		l.Close()
	}()
	if a := <-answered; a.Status != order.Failed {
		t.Errorf("answer %+v, want the failure of a Payment that went away", a)
	}
	<-closed
}

func TestStartOnPortsInUse(t *testing.T) {
	l, err := Start(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := func(address string) int {
		u, _ := url.Parse(address)
		n, _ := strconv.Atoi(u.Port())
		return n
	}
	if _, err := Start(Config{PaymentPort: port(l.PaymentURL())}); err == nil || !strings.HasPrefix(err.Error(), "payment service: ") {
		t.Errorf("error %v, want Payment's", err)
	}
	if _, err := Start(Config{OrderPort: port(l.OrderURL())}); err == nil || !strings.HasPrefix(err.Error(), "order service: ") {
		t.Errorf("error %v, want Order's", err)
	}
}
