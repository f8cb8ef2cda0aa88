package fencing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/quorate/quorate/redlock"
)

// A HandlerOption is a setting of a handler.
type HandlerOption interface{ applyHandler(*handlerSettings) }

type handlerSettings struct {
	resources func(*http.Request) []string
	logger    *slog.Logger
}

type handlerOption func(*handlerSettings)

func (o handlerOption) applyHandler(s *handlerSettings) { o(s) }

// WithResources says which resources a request changes: one without a token for each of them is refused.
// Without this option, the code behind has to ask for the token of what it changes, by TokenFor,
// because a caller may hold something else.
func WithResources(of func(*http.Request) []string) HandlerOption {
	return handlerOption(func(s *handlerSettings) { s.resources = of })
}

// WithLogger sets where an operator is told of a gate that cannot be asked. Default slog.Default().
func WithLogger(l *slog.Logger) HandlerOption {
	return handlerOption(func(s *handlerSettings) { s.logger = l })
}

type handler struct {
	gate     Gate
	next     http.Handler
	settings handlerSettings
}

// NewHandler puts a gate before a handler: next sees the requests whose tokens the gate has admitted,
// with the tokens in their contexts, for TokenFor and TokenFrom. The others are answered here:
//
//	428 Precondition Required   no token, or none for one of WithResources
//	400 Bad Request             a header that cannot be read, a token that no lease can have
//	412 Precondition Failed     the gate has admitted a higher token; see CheckResponse
//	503 Service Unavailable     the gate could not be asked; nothing was done
//
// Put it before what writes; reads need no gate. It refuses those that come late as early as it
// can, and no more: a request may be paused behind it. So what next writes has to go through a
// gate as well, with the token from the context. The error wraps redlock.ErrInvalidOption.
func NewHandler(gate Gate, next http.Handler, opts ...HandlerOption) (http.Handler, error) {
	h := &handler{gate: gate, next: next}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("fencing: %w: a nil HandlerOption", redlock.ErrInvalidOption)
		}
		o.applyHandler(&h.settings)
	}
	if f, ok := next.(http.HandlerFunc); next == nil || ok && f == nil {
		return nil, fmt.Errorf("fencing: %w: the handler is nil", redlock.ErrInvalidOption)
	}
	if missing(gate) {
		return nil, fmt.Errorf("fencing: %w: the gate is nil; without one every request would pass", redlock.ErrInvalidOption)
	}
	if h.settings.logger == nil {
		h.settings.logger = slog.Default()
	}
	return h, nil
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tokens, err := h.read(r)
	switch {
	case errors.Is(err, ErrNoToken):
		http.Error(w, err.Error(), http.StatusPreconditionRequired)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx := r.Context()
	for _, resource := range slices.Sorted(maps.Keys(tokens)) {
		if err := h.gate.Admit(ctx, resource, tokens[resource]); err != nil {
			h.refuse(ctx, w, resource, tokens[resource], err)
			return
		}
	}
	h.next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, ticketsKey{}, newTickets(ctx, ctx, tokens))))
}

// read finds the tokens of a request.
func (h *handler) read(r *http.Request) (Tokens, error) {
	tokens, err := ParseHeader(r.Header)
	if err != nil || h.settings.resources == nil {
		return tokens, err
	}
	for _, resource := range h.settings.resources(r) {
		if _, ok := tokens[resource]; !ok {
			return nil, fmt.Errorf("fencing: %w for %.80q, which the request would change; hold it, and send its token", ErrNoToken, resource)
		}
	}
	return tokens, nil
}

// refuse says why a token was not admitted. What a gate says of its own troubles is for the log.
func (h *handler) refuse(ctx context.Context, w http.ResponseWriter, resource string, token redlock.Token, err error) {
	switch {
	case errors.Is(err, ErrStaleToken):
		stale := &StaleError{Resource: resource, Token: token}
		var detail *StaleError
		if errors.As(err, &detail) {
			stale.Seen = detail.Seen
		}
		w.Header().Set(HeaderResource, url.PathEscape(resource))
		w.Header().Set(HeaderToken, strconv.FormatInt(int64(stale.Seen), 10))
		http.Error(w, stale.Error(), http.StatusPreconditionFailed)
	case errors.Is(err, ErrInvalidToken), errors.Is(err, redlock.ErrInvalidName):
		http.Error(w, fmt.Sprintf("fencing: the gate takes no resource %.80q with token %d", resource, token), http.StatusBadRequest)
	default:
		if ctx.Err() == nil {
			h.settings.logger.Warn("fencing: the gate could not be asked; the request was refused", "resource", resource, "token", int64(token), "error", err)
		}
		http.Error(w, fmt.Sprintf("fencing: the gate of %.80q could not be asked; nothing was done, try again", resource), http.StatusServiceUnavailable)
	}
}
