package dashboard

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

const (
	maxActions    = 8                // at the same time
	actionTimeout = 15 * time.Second // of one
	maxBody       = 4 << 10
)

// Why an action is refused. What it is asked of may have errors of its own.
var (
	errReadOnly = errors.New("the dashboard is read-only; actions are switched on by WithActions")
	errForeign  = errors.New("the request comes from another site; open the page itself, by the host that the server is asked for")
	errToken    = errors.New("the token is missing or wrong")
	errBusy     = errors.New("too many actions go on; try again in a moment")
	errNoAction = errors.New("there is no such action; there are pause, resume, trigger, resign and break")
)

// An errRequest is a request that cannot be understood.
type errRequest struct{ error }

// An actionAnswer is what the page is told of an action.
type actionAnswer struct {
	Message string `json:"message,omitempty"`
	Err     string `json:"error,omitempty"`
}

// serveAction does what is asked for, if it may be, and logs it in any case.
func (h *Handler) serveAction(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	what := r.PathValue("what")
	name, message, err := h.act(w, r, what)
	level, outcome := slog.LevelInfo, "done"
	attrs := []slog.Attr{
		slog.String("action", brief(what)), slog.String("name", show(name)), slog.String("remote", r.RemoteAddr),
		slog.Duration("took", time.Since(begun)),
	}
	if h.settings.actor != nil {
		attrs = append(attrs, slog.String("actor", brief(h.settings.actor(r))))
	}
	status := statusOf(err)
	if err != nil {
		level, outcome = slog.LevelWarn, "failed"
		if status < http.StatusNotFound {
			outcome = "refused"
		}
		attrs = append(attrs, slog.String("error", explain(err)))
	}
	attrs = append(attrs, slog.String("outcome", outcome))
	h.settings.logger.LogAttrs(r.Context(), level, "dashboard: action", attrs...)
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "5")
	}
	answer := actionAnswer{Message: message}
	if err != nil {
		answer = actionAnswer{Err: explain(err)}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // who does not read it has gone
}

func statusOf(err error) int {
	var request errRequest
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &request):
		return http.StatusBadRequest
	case errors.Is(err, errReadOnly), errors.Is(err, errForeign):
		return http.StatusForbidden
	case errors.Is(err, errToken):
		return http.StatusUnauthorized
	case errors.Is(err, errNoAction), errors.Is(err, scheduler.ErrUnknownJob):
		return http.StatusNotFound
	case errors.Is(err, leader.ErrNotLeader), errors.Is(err, scheduler.ErrTooManyRequests):
		return http.StatusConflict
	case errors.Is(err, errBusy):
		return http.StatusTooManyRequests
	case errors.Is(err, redlock.ErrNoQuorum), errors.Is(err, redlock.ErrQuarantined):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadGateway
}

// act checks who asks for what, and does it.
func (h *Handler) act(w http.ResponseWriter, r *http.Request, what string) (name, message string, err error) {
	switch {
	case !h.settings.actions:
		return "", "", errReadOnly
	case h.origins.Check(r) != nil:
		return "", "", errForeign
	case !h.knowsToken(r.Header.Get("Authorization")):
		return "", "", errToken
	}
	var request struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&request); err != nil {
		return "", "", errRequest{fmt.Errorf("the request cannot be read: %w", err)}
	}
	name, err = nameOf(request.ID)
	if err != nil {
		return "", "", errRequest{err}
	}
	select {
	case h.busy <- struct{}{}:
		defer func() { <-h.busy }()
	default:
		return name, "", errBusy
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	message, err = h.do(ctx, what, name)
	h.hurry()
	return name, message, err
}

// knowsToken compares digests, so that the time it takes tells nothing, of the length either.
func (h *Handler) knowsToken(authorization string) bool {
	scheme, token, _ := strings.Cut(authorization, " ")
	given, right := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(h.settings.token))
	return subtle.ConstantTimeCompare(given[:], right[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

func (h *Handler) do(ctx context.Context, what, name string) (message string, err error) {
	defer h.ledgers.hurry(name)
	switch what {
	case "pause":
		return "paused: no replica starts a tick of it until it is resumed", h.jobs.Pause(ctx, name)
	case "resume":
		return "resumed", h.jobs.Resume(ctx, name)
	case "trigger":
		return "triggered: the first replica that knows the job runs it once", h.jobs.Trigger(ctx, name)
	case "resign":
		return "resigned: another candidate can lead now", h.resign(ctx, name)
	case "break":
		before, err := h.locker.Break(ctx, name)
		if before.Holder == "" {
			return "freed; no quorum of nodes had a holder", err
		}
		return "freed; it was held by " + brief(before.Holder), err
	}
	return "", errNoAction
}

func (h *Handler) resign(ctx context.Context, name string) error {
	for _, e := range h.elections.localsOf(name) {
		if err := e.Resign(ctx); !errors.Is(err, leader.ErrNotLeader) {
			return err
		}
	}
	return fmt.Errorf("%w: no candidate of this process leads %.64q; ask the replica that does", leader.ErrNotLeader, name)
}
