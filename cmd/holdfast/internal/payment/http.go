package payment

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/loopback"
)

// Handler serves the provider's routes:
//
//	POST /payments/{order}                     charge an order
//	GET  /payments/{order}                     was it paid?
//	POST /admin/mode/{ok|slow|down|flaky}      flaky takes ?failRate=, default 0.5, and &lost=
//	GET  /admin/stats
//	POST /admin/reset
//	POST /admin/idempotency/{on|off}
//
// The mode is about charges; questions are always answered at once, but a share of them
// fails too while the mode is flaky. Of the failures of a flaky provider the share lost,
// by default none, has charged all the same: its answer is a gateway's, 504.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments/{order}", s.postPayment)
	mux.HandleFunc("GET /payments/{order}", s.getPayment)
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
	receipt, err := s.charge(r.PathValue("order"))
	reply(w, receipt, err)
}

func (s *Service) getPayment(w http.ResponseWriter, r *http.Request) {
	receipt, err := s.ask(r.PathValue("order"))
	reply(w, receipt, err)
}

func reply(w http.ResponseWriter, receipt Receipt, err error) {
	switch err {
	case nil:
		loopback.Reply(w, http.StatusOK, receipt)
	case errLost:
		refuse(w, http.StatusGatewayTimeout, "%v", err)
	default:
		refuse(w, http.StatusInternalServerError, "%v", err)
	}
}

func (s *Service) postMode(w http.ResponseWriter, r *http.Request) {
	switch mode := Mode(r.PathValue("mode")); mode {
	case OK, Slow, Down:
		s.setMode(mode)
	case Flaky:
		failRate, err := share(r, "failRate", 0.5)
		lost, err2 := share(r, "lost", 0)
		if err := cmp.Or(err, err2); err != nil {
			refuse(w, http.StatusBadRequest, "%v", err)
			return
		}
		s.setFlaky(newFlakiness(failRate, lost))
	default:
		refuse(w, http.StatusBadRequest, "mode %q: must be ok, slow, down or flaky", mode)
		return
	}
	loopback.Reply(w, http.StatusOK, s.Stats())
}

// share reads a parameter that is from 0 to 1.
func share(r *http.Request, name string, otherwise float64) (float64, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return otherwise, nil
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, fmt.Errorf("%s=%s: must be between 0 and 1", name, v)
	}
	return f, nil
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
