package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
)

// A shift is how long lead and cron go on: until a signal tells them to stop.
type shift struct {
	hurried chan struct{} // closed at the second such signal: programs are killed then
}

// work calls do with a context that ends at the first signal, and returns what it returns. Signals that
// mean nothing to quorate are given to forward.
func (c *console) work(ctx context.Context, forward func(os.Signal), do func(ctx context.Context, s *shift) error) error {
	signals, stop := c.signals(ctx, slices.Concat(endingSignals, otherSignals)...)
	defer stop()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // main's ends by the same signals
	defer cancel()
	s := &shift{hurried: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- do(ctx, s) }()
	hurry := sync.OnceFunc(func() { close(s.hurried) })
	for {
		select {
		case err := <-ended:
			return err
		case got := <-signals:
			switch {
			case !slices.Contains(endingSignals, got):
				forward(got)
			case ctx.Err() == nil:
				cancel()
			default:
				hurry()
			}
		}
	}
}

// errHurried is the end of a program at the second signal.
var errHurried = errors.New("quorate was told to stop twice")

// cover waits for the end of the program, or of the context that it may run under, or for somebody in a
// hurry, and gives what ended it: nil where that was its own doing.
func cover(ctx context.Context, ch *child, hurry <-chan struct{}, end func(cause error)) error {
	var cause error
	select {
	case <-ch.ended:
		ch.wait()
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-hurry:
		cause = errHurried
	}
	end(cause)
	return cause
}

// leaseOver reports whether the end of a context is that of the lease under it, after which little time is left.
func leaseOver(cause error) bool {
	var ended *redlock.LeaseError
	return errors.As(cause, &ended)
}

// warnings gives a logger that tells what an operator must know in lines of quorate's own, but for what is
// told otherwise: events with an outcome, of which observers hear, and these messages.
func (c *console) warnings(but ...string) *slog.Logger {
	return slog.New(&lines{console: c, but: but})
}

// lines is a slog.Handler.
type lines struct {
	*console
	but   []string
	attrs string
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	_, text, found := strings.Cut(r.Message, ": ")
	if !found {
		text = r.Message
	}
	if slices.Contains(l.but, text) {
		return nil
	}
	attrs, event := l.attrs, false
	r.Attrs(func(a slog.Attr) bool {
		err, _ := a.Value.Any().(error)
		event = event || strings.HasSuffix(a.Key, "outcome") || errors.Is(err, redis.ErrClosed) // which is our own doing
		attrs += " " + a.String()
		return true
	})
	if !event {
		l.say("%s:%s", text, attrs)
	}
	return nil
}

func (l *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *l
	for _, a := range attrs {
		with.attrs += " " + a.String()
	}
	return &with
}

func (l *lines) WithGroup(string) slog.Handler { return l }
