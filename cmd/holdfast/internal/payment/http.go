package payment

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/loopback"
)

// Handler serves the provider's routes:
//
//	POST /payments/{order}                     charge an order
//	GET  /payments/{order}                     was it paid?
//	POST /admin/mode/{ok|slow|down|flaky}      flaky takes ?failRate=, default 0.5
//	GET  /admin/stats
//	POST /admin/reset
//	POST /admin/idempotency/{on|off}
//
// The mode is about charges: questions are always answered at once.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments/{order}", s.postPayment)
	mux.HandleFunc("GET /payments/{order}", func(w http.ResponseWriter, r *http.Request) {
		loopback.Reply(w, http.StatusOK, s.ask(r.PathValue("order")))
	})
	mux.HandleFunc("POST /admin/mode/{mode}", s.postMode)
	mux.HandleFunc("GET /admin/stats", func(w http.ResponseWriter, _ *http.Request) {
		loopback.Reply(w, http.StatusOK, s.Stats())
	})
	mux.HandleFunc("POST /admin/reset", func(w http.ResponseWriter, _ *http.Request) {
		s.reset()
		loopback.Reply(w, http.StatusOK, s.Stats())
	})
	mux.HandleFunc("POST /admin/idempotency/{switch}", s.postIdempotency)
	return mux
}

func (s *Service) postPayment(w http.ResponseWriter, r *http.Request) {
	receipt, ok := s.charge(r.PathValue("order"))
	if !ok {
		refuse(w, http.StatusInternalServerError, "payment provider down")
		return
	}
	loopback.Reply(w, http.StatusOK, receipt)
}

func (s *Service) postMode(w http.ResponseWriter, r *http.Request) {
	mode := Mode(r.PathValue("mode"))
	failRate := 0.5
	switch mode {
	case OK, Slow, Down:
	case Flaky:
		if v := r.URL.Query().Get("failRate"); v != "" {
			rate, err := strconv.ParseFloat(v, 64)
			if err != nil || !(rate >= 0 && rate <= 1) {
				refuse(w, http.StatusBadRequest, "failRate=%s: must be between 0 and 1", v)
				return
			}
			failRate = rate
		}
	default:
		refuse(w, http.StatusBadRequest, "mode %q: must be ok, slow, down or flaky", mode)
		return
	}
	s.setMode(mode, failRate)
	loopback.Reply(w, http.StatusOK, s.Stats())
}

func (s *Service) postIdempotency(w http.ResponseWriter, r *http.Request) {
	v := r.PathValue("switch")
	if v != "on" && v != "off" {
		refuse(w, http.StatusBadRequest, "idempotency %q: must be on or off", v)
		return
	}
	s.setIdempotent(v == "on")
	loopback.Reply(w, http.StatusOK, map[string]string{"idempotency": v})
}

func refuse(w http.ResponseWriter, code int, format string, args ...any) {
	loopback.Reply(w, code, loopback.Problem{Error: fmt.Sprintf(format, args...)})
}
