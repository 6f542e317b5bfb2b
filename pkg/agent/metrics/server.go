package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// DefaultAddress is where the listener is unless told otherwise: only processes of
// the node reach it. NPD's port, so that scrape configs stay as they are.
const DefaultAddress = "127.0.0.1:20257"

// Server serves /metrics, /healthz and /readyz. It is a component of the agent.
type Server struct {
	// Address is where to listen, such as "127.0.0.1:20257" or ":20257".
	Address string
	// Metrics are what /metrics shows.
	Metrics *Metrics
	// Ready says why the agent is not ready yet; nil when it is. It must not block on
	// anything, and neither does /healthz, which says only that the process answers:
	// a hung mount or device must not get the agent killed.
	Ready func() error
}

// Name implements agent.Component.
func (s *Server) Name() string { return "metrics" }

// Handler is what the server serves.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.Metrics.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// Run implements agent.Component.
func (s *Server) Run(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("metrics: %w; choose another address with --metrics-address", err)
	}
	srv := &http.Server{
		Handler: s.Handler(), ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
