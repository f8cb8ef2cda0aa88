package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

const (
	// maxStreams is how many pages may be open.
	maxStreams = 64
	// patience is for how long a reader may take nothing of what it is sent.
	patience = 10 * time.Second
	// beat is how often a stream shows that it is alive. The page gives it up after three of them.
	beat = 5 * time.Second
	// pace is the least time between two messages of a stream.
	pace = 200 * time.Millisecond
)

var (
	errTooMany = errors.New("too many pages are open; close some, and try again")
	errNoFlush = errors.New("a middleware keeps the stream from being flushed; let its http.ResponseWriter have Flush or Unwrap")
)

// An audience is those who look. While there is one, the fleet is asked.
type audience struct {
	mu      sync.Mutex
	viewers int
	closed  bool
	stop    context.CancelFunc
	ended   chan struct{} // the survey that was begun last is over
}

// join lets one more look, until it calls leave.
func (h *Handler) join() (leave func(), err error) {
	a := &h.audience
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return nil, errClosed
	case a.viewers >= maxStreams:
		return nil, errTooMany
	}
	a.viewers++
	h.background.Add(1)
	if a.viewers == 1 {
		var ctx context.Context
		ctx, a.stop = context.WithCancel(h.ctx)
		before, ended := a.ended, make(chan struct{})
		a.ended = ended
		h.background.Go(func() {
			defer close(ended)
			if before != nil {
				<-before
			}
			h.survey(ctx)
		})
	}
	return func() {
		a.mu.Lock()
		if a.viewers--; a.viewers == 0 {
			a.stop()
		}
		a.mu.Unlock()
		h.background.Done()
	}, nil
}

// close has nobody join any more.
func (a *audience) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// serveEvents sends the board, and then what changes of it, until the reader has gone, is too slow, or the
// Handler is closed.
func (h *Handler) serveEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "dashboard: a stream is for GET", http.StatusMethodNotAllowed)
		return
	}
	leave, err := h.join()
	if err != nil {
		w.Header().Set("Retry-After", "15")
		http.Error(w, "dashboard: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	s := &stream{w: w, control: http.NewResponseController(w)}
	// A write that hangs is not waited for when the Handler is closed.
	cut := make(chan struct{})
	spare := context.AfterFunc(h.ctx, func() {
		defer close(cut)
		_ = s.control.SetWriteDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !spare() {
			<-cut // the connection is not ours any longer than this call lasts
		}
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that collects the stream would keep it from the page
	if err := s.control.Flush(); errors.Is(err, http.ErrNotSupported) {
		// Nothing would come through before the end. The page cannot read why; who runs the service can.
		h.settings.logger.ErrorContext(r.Context(), "dashboard: no page can be served", slog.String("error", errNoFlush.Error()))
		http.Error(w, "dashboard: "+errNoFlush.Error(), http.StatusInternalServerError)
		return
	}
	alive := time.NewTicker(beat)
	defer alive.Stop()
	var last uint64
	for {
		updates, now, changed := h.board.since(last)
		last = now
		if s.send(h.ctx, updates) != nil {
			return
		}
		select {
		case <-changed:
		case <-alive.C:
		case <-r.Context().Done():
			return
		case <-h.ctx.Done():
			return
		}
		if pause(r.Context(), pace) != nil {
			return
		}
	}
}

// A stream is one page's.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// send writes the updates and the time, and sees to it that they are on their way.
func (s *stream) send(ctx context.Context, updates []update) error {
	// Where no deadline can be set the server's own have to do.
	_ = s.control.SetWriteDeadline(time.Now().Add(patience))
	if ctx.Err() != nil { // the deadline of Close came before this one
		return context.Cause(ctx)
	}
	if _, err := fmt.Fprintf(s.w, "event: tick\ndata: {\"now\":%d}\n\n", time.Now().UnixMilli()); err != nil {
		return err
	}
	for _, u := range updates {
		data, err := json.Marshal(u)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", u.section, data); err != nil {
			return err
		}
	}
	return s.control.Flush()
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
