package order

import (
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/loopback"
)

// Stats tells how many orders wait for an answer.
type Stats struct {
	Waiting    int `json:"waiting"`
	MaxWaiting int `json:"maxWaiting"`
}

// Handler serves the routes:
//
//	POST /orders/{order}            charge an order
//	GET  /orders/{order}/payment    what really happened, says Payment
//	GET  /data2                     needs no Payment, and must stay fast
//	GET  /admin/stats
//	GET  /admin/breaker             404 where there is none
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{order}", s.postOrder)
	mux.HandleFunc("GET /orders/{order}/payment", s.getPayment)
	mux.HandleFunc("GET /data2", func(w http.ResponseWriter, _ *http.Request) {
		loopback.Reply(w, http.StatusOK, map[string]string{"data": "needs no Payment"})
	})
	mux.HandleFunc("GET /admin/stats", func(w http.ResponseWriter, _ *http.Request) {
		loopback.Reply(w, http.StatusOK, s.Stats())
	})
	mux.HandleFunc("GET /admin/breaker", s.getBreaker)
	return mux
}

// Stats returns the counters.
func (s *Service) Stats() Stats {
	now, most := s.waiting.read()
	return Stats{Waiting: now, MaxWaiting: most}
}

func (s *Service) postOrder(w http.ResponseWriter, r *http.Request) {
	defer s.waiting.enter()()
	order := r.PathValue("order")
	code := http.StatusOK
	ctx, tried := counting(r.Context())
	answer, err := s.payment.charge(ctx, order)
	switch {
	case err != nil:
		code, answer = tried.unpaid(err)
		retryAfter(w.Header(), err)
	case answer.Status == Pending:
		code = http.StatusAccepted
	}
	answer.OrderID, answer.Calls = order, tried.calls
	loopback.Reply(w, code, answer)
}

func (s *Service) getPayment(w http.ResponseWriter, r *http.Request) {
	receipt, err := s.payment.ask(r.Context(), r.PathValue("order"))
	if err != nil {
		retryAfter(w.Header(), err)
		loopback.Reply(w, http.StatusServiceUnavailable, loopback.Problem{Error: fmt.Sprintf("cannot ask Payment: %v", why(err))})
		return
	}
	loopback.Reply(w, http.StatusOK, receipt)
}

func (s *Service) getBreaker(w http.ResponseWriter, _ *http.Request) {
	if s.breaker == nil {
		loopback.Reply(w, http.StatusNotFound, loopback.Problem{Error: "this service has no circuit breaker"})
		return
	}
	loopback.Reply(w, http.StatusOK, s.circuit())
}
