package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/fencing"
)

// runReplica serves until standard input is closed, which also the death of the parent does.
func runReplica(cfg config) error {
	out := newReporter(cfg.Replica, os.Stdout)
	db, waits, err := cfg.Database.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing is left to be written
	store, err := newStore(db, cfg.Database.Dialect)
	if err != nil {
		return err
	}
	locker, closeLocker, err := cfg.locker()
	if err != nil {
		return err
	}
	defer closeLocker()
	seller, err := newSeller(cfg.Way, store, locker, cfg.Queue)
	if err != nil {
		return err
	}
	halt := newHalt(cfg.FreezeAt, out)
	shop := &service{seller: seller, logger: cfg.logger(), check: halt.check}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           shop.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute, // also for those who wait in line
		IdleTimeout:       time.Minute,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	out.report(event{Kind: ready, Addr: listener.Addr().String()})

	told := make(chan struct{})
	go func() {
		defer close(told)
		halt.obey(os.Stdin)
	}()
	select {
	case err := <-served:
		return err
	case <-told:
	}
	// Those who are being served are served to the end.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	waited, most := waits.sum()
	out.report(event{Kind: done, Stale: int(shop.stale.Load()), Waited: waited, MostWait: most})
	return nil
}

// A halt is the place in the middle of a sale where a replica is frozen. A process can be paused
// anywhere; so that it happens where it hurts, the replica waits there for the parent to do it.
type halt struct {
	at    int // the sale, by number; 0: none
	out   *reporter
	sales atomic.Int64
	goOn  chan struct{}
	once  sync.Once
}

func newHalt(at int, out *reporter) *halt { return &halt{at: at, out: out, goOn: make(chan struct{})} }

func (h *halt) check(left int) (ended func(error)) {
	if h.sales.Add(1) != int64(h.at) {
		return nil
	}
	h.out.report(event{Kind: inside, Left: left})
	<-h.goOn
	return func(err error) {
		switch {
		case err == nil:
			h.out.report(event{Kind: landed, Left: left})
		case errors.Is(err, fencing.ErrStaleToken):
			h.out.report(event{Kind: refused, Left: left})
		default:
			h.out.report(event{Kind: failed, Left: left, Text: err.Error()})
		}
	}
}

// obey lets a sale go on at the parent's word, and at its end.
func (h *halt) obey(in io.Reader) {
	goOn := func() { h.once.Do(func() { close(h.goOn) }) }
	defer goOn()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		goOn()
	}
}
