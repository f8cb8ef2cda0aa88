package dashboard

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

// Defaults and limits.
const (
	// DefaultInterval is how often the nodes are asked while a page is open.
	DefaultInterval = 2 * time.Second
	// MinInterval is the shortest interval.
	MinInterval = 100 * time.Millisecond
	// MinTokenLength is the length of the shortest token for actions, in bytes.
	MinTokenLength = 16
)

// An Option is a setting of a Handler.
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

type settings struct {
	scheduler *scheduler.Scheduler
	electors  []*leader.Elector
	recorder  *Recorder
	actions   bool
	token     string
	interval  time.Duration
	hosts     []string
	actor     func(*http.Request) string
	logger    *slog.Logger
}

// WithScheduler has the page show when the jobs of this Scheduler come due next, in their time zones.
// What became of the last ticks, pauses and requests are shown of all jobs of the fleet without it.
// Default: none.
func WithScheduler(s *scheduler.Scheduler) Option {
	return option(func(set *settings) { set.scheduler = s })
}

// WithElectors has the page follow these elections all the time, also while nobody leads and while no
// page is open, and say what becomes of this process' candidates. Only who leads in this process can be
// made to resign. Default: none; elections are then seen while somebody leads and a page is open.
func WithElectors(electors ...*leader.Elector) Option {
	return option(func(set *settings) { set.electors = append(set.electors, electors...) })
}

// WithContention has the page show the names that this process waited longest for. The Recorder must
// be given to the Locker as well: redlock.WithObserver(recorder.Observe). Default: none.
func WithContention(r *Recorder) Option {
	return option(func(set *settings) { set.recorder = r })
}

// WithActions switches actions on, for whoever knows the token: printable ASCII without spaces, at least
// MinTokenLength bytes. Make it at random: openssl rand -hex 16. Default: the page is read-only.
func WithActions(token string) Option {
	return option(func(set *settings) { set.actions, set.token = true, token })
}

// WithInterval sets how often the nodes are asked while a page is open; names are listed less often
// where that takes long. Default DefaultInterval, at least MinInterval.
func WithInterval(d time.Duration) Option {
	return option(func(set *settings) { set.interval = d })
}

// WithHosts has every request refused whose Host is none of these, which are compared without port and
// without regard to case: it stops sites whose name was made to resolve to this address from reading
// the data (DNS rebinding). Default: any host, for handlers behind authentication.
func WithHosts(hosts ...string) Option {
	return option(func(set *settings) { set.hosts = append(set.hosts, hosts...) })
}

// WithActor sets how the log calls who asks for an action, beside the remote address: the user that
// your authentication has put into the request's context, say. Default: nothing more.
func WithActor(actor func(*http.Request) string) Option {
	return option(func(set *settings) { set.actor = actor })
}

// WithLogger sets where actions are logged. Default slog.Default().
func WithLogger(l *slog.Logger) Option {
	return option(func(set *settings) { set.logger = l })
}

func (s *settings) check() error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("dashboard: %w: "+format, append([]any{redlock.ErrInvalidOption}, args...)...)
	}
	for _, e := range s.electors {
		if e == nil {
			return invalid("an elector is nil; leave it out of WithElectors")
		}
	}
	switch {
	case s.interval < MinInterval:
		return invalid("interval %v; give at least %v", s.interval, MinInterval)
	case s.actions && len(s.token) < MinTokenLength:
		return invalid("the token has %d bytes; give at least %d, made at random", len(s.token), MinTokenLength)
	case s.actions && !isToken(s.token):
		return invalid("the token has a byte that no header can carry; use letters and digits")
	case s.logger == nil:
		return invalid("the logger is nil; leave WithLogger out for the default")
	}
	return nil
}

// isToken reports whether a header can carry the text as it is.
func isToken(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
