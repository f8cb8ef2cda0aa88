package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// serve runs the replicas, and serves their metrics, until ctx ends.
func serve(ctx context.Context, o options, out, errOut io.Writer) error {
	p := &printer{out: out}
	tracers := newTracers(p)
	defer func() { _ = tracers.Shutdown(context.WithoutCancel(ctx)) }() // prints the last spans; nothing is left to be done about a failure
	log := slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: slog.LevelWarn}))

	nodes, err := newFleet(o.nodes)
	if err != nil {
		return err
	}
	defer nodes.close()

	registry := prometheus.NewRegistry()
	replicas := make([]*replica, 0, o.replicas)
	defer func() {
		for _, r := range replicas {
			r.close()
		}
	}()
	for i := range o.replicas {
		name := replicaName(i, o.replicas)
		// Series of one process are told apart by this label; replicas in processes of their own are by
		// the one that Prometheus itself gives, instance.
		meters, err := newMeters(prometheus.WrapRegistererWith(prometheus.Labels{"replica": name}, registry))
		if err != nil {
			return err
		}
		r, err := newReplica(name, i, nodes, telemetry{tracers: tracers, meters: meters, log: log, print: p})
		if err != nil {
			return err
		}
		replicas = append(replicas, r)
	}

	server, addr, err := listen(o.listen, registry, replicas)
	if err != nil {
		return err
	}
	defer server()
	p.say("%d replicas on %s; metrics: http://%s/metrics", o.replicas, nodes.where(), addr)

	var all sync.WaitGroup
	defer all.Wait()
	for _, r := range replicas {
		all.Go(func() { r.run(ctx, o.mishaps) })
	}
	<-ctx.Done()
	return nil
}

// replicaName is what the replica is called in records and logs: the host is enough where a process has one.
func replicaName(i, of int) string {
	if host, err := os.Hostname(); err == nil && of == 1 {
		return host
	}
	return fmt.Sprintf("r%d", i+1)
}

// listen serves /metrics; /healthz, for the liveness probe of an orchestrator; and /readyz.
func listen(addr string, registry *prometheus.Registry, replicas []*replica) (shut func(), at net.Addr, err error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	for _, r := range replicas {
		mux.Handle("GET /healthz/"+r.name, r.elector.Healthz())
	}
	mux.Handle("GET /healthz", replicas[0].elector.Healthz())
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for Prometheus: %w; choose another address with -listen", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("telemetry: serve metrics", "error", err)
		}
	}()
	return func() {
		_ = server.Close() // whoever reads now is cut off
		<-served
	}, listener.Addr(), nil
}
