package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	log "k8s.io/klog/v2"
)

// health answers kubelet's probes: /healthz while flanneld runs, /readyz once the network is up.
type health struct{ ready atomic.Bool }

func (h *health) serve(ctx context.Context, workers *sync.WaitGroup, opts *options) error {
	address := net.JoinHostPort(opts.healthzIP, strconv.Itoa(opts.healthzPort))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen for health checks: %w", err)
	}
	log.Infof("Start healthz server on %s", address)
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "flanneld is running")
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !h.ready.Load() {
			http.Error(w, "flanneld is not ready yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "flanneld is ready")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	workers.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Errorf("healthz server: %v", err)
		}
	})
	workers.Go(func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err := server.Shutdown(last); err != nil {
			log.Errorf("Shutdown healthz server error. %v", err)
		}
	})
	return nil
}
