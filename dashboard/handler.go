package dashboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

// A Handler serves the page and its data. It is safe for use by many goroutines. Make it with New, and
// Close it.
type Handler struct {
	locker   *redlock.Locker
	jobs     *scheduler.Scheduler // asks about jobs; knows the schedules of those of WithScheduler
	settings settings
	mux      *http.ServeMux
	origins  *http.CrossOriginProtection
	busy     chan struct{} // an entry for each action that goes on

	board     *board
	showing   sync.Mutex // two who sum the fleet up do not overtake each other
	nodes     nodesView
	names     namesView
	elections elections
	ledgers   ledgers

	ctx        context.Context
	cancel     context.CancelCauseFunc
	background sync.WaitGroup // electors that are watched, surveys
	audience   audience
	kick       chan struct{} // an action was taken: look at once
}

var errClosed = errors.New("dashboard closed")

// New makes a Handler for the fleet of a Locker. The Locker, and what else is given, stay the caller's:
// close the Handler first.
//
// Nothing is asked of the nodes before a page is opened, but for WithElectors. The error is
// redlock.ErrInvalidOption.
func New(locker *redlock.Locker, opts ...Option) (*Handler, error) {
	set := settings{interval: DefaultInterval, logger: slog.Default()}
	for _, o := range opts {
		o.apply(&set)
	}
	if locker == nil {
		return nil, fmt.Errorf("dashboard: %w: the locker is nil", redlock.ErrInvalidOption)
	}
	if err := set.check(); err != nil {
		return nil, err
	}
	h := &Handler{
		locker: locker, jobs: set.scheduler, settings: set,
		origins: http.NewCrossOriginProtection(), busy: make(chan struct{}, maxActions),
		board: newBoard(), kick: make(chan struct{}, 1),
	}
	if h.jobs == nil {
		var err error
		if h.jobs, err = scheduler.New(locker, scheduler.WithLogger(set.logger), scheduler.WithIdentity("dashboard of "+locker.Identity())); err != nil {
			return nil, fmt.Errorf("dashboard: %w", err)
		}
	}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	h.mux = h.routes()
	h.elections.init(set.electors)
	for _, e := range set.electors {
		h.background.Go(func() { h.follow(e) })
	}
	return h, nil
}

// Close ends all streams and everything that the Handler has started, and returns when that is over. It
// always returns nil. Requests that come later are answered with 503 Service Unavailable.
func (h *Handler) Close() error {
	h.audience.close()
	h.cancel(errClosed)
	h.background.Wait()
	return nil
}

func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { serveAsset(w, r, "index.html") })
	mux.HandleFunc("GET /assets/{name}", func(w http.ResponseWriter, r *http.Request) { serveAsset(w, r, r.PathValue("name")) })
	mux.HandleFunc("GET /events", h.serveEvents)
	mux.HandleFunc("GET /names", h.serveNames)
	mux.HandleFunc("POST /actions/{what}", h.serveAction)
	return mux
}

// ServeHTTP serves the page, its files, its data and, with WithActions, its actions.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if h.ctx.Err() != nil {
		http.Error(w, "dashboard: closed", http.StatusServiceUnavailable)
		return
	}
	if !h.isOurs(r.Host) {
		http.Error(w, "dashboard: unknown host; open the page by a host that WithHosts allows", http.StatusForbidden)
		return
	}
	if r.URL.Path == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		// Relative URLs need the slash. The prefix that was stripped is known to the client alone, and so the
		// way there is relative too.
		before, _, _ := strings.Cut(r.RequestURI, "?")
		w.Header().Set("Location", "./"+path.Base(before)+"/")
		w.WriteHeader(http.StatusFound)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// isOurs reports whether a request was sent to a host that WithHosts allows.
func (h *Handler) isOurs(host string) bool {
	if len(h.settings.hosts) == 0 {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return slices.ContainsFunc(h.settings.hosts, func(allowed string) bool {
		return strings.EqualFold(strings.Trim(allowed, "[]"), host)
	})
}

// secure sets what keeps a page safe whatever its texts are. Trusted types without a policy have the browser
// refuse to make markup of a string at all.
func secure(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
}
