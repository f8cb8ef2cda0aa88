package dashboard_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis reports each dial that a fault makes fail
	goleak.VerifyTestMain(m)
}

const (
	token    = "0123456789abcdef"
	interval = time.Second
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// inBubble runs a test with a fleet on fake time.
func inBubble(t *testing.T, test func(t *testing.T, f *redlocktest.Fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, redlocktest.Start(t, 3)) })
}

func newLocker(t *testing.T, f *redlocktest.Fleet, host string, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	all := append([]redlock.Option{redlock.WithClock(redlocktest.NewClock()), redlock.WithIdentity(host), redlock.WithLogger(quiet)}, opts...)
	locker, err := redlock.New(f.Host(host).Clients(), all...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = locker.Close() })
	return locker
}

func newBoard(t *testing.T, locker *redlock.Locker, opts ...dashboard.Option) *dashboard.Handler {
	t.Helper()
	all := append([]dashboard.Option{dashboard.WithInterval(interval), dashboard.WithLogger(quiet)}, opts...)
	h, err := dashboard.New(locker, all...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// hold holds a name until the test ends.
func hold(t *testing.T, locker *redlock.Locker, name string) *redlock.Lease {
	t.Helper()
	lease, err := locker.Acquire(t.Context(), name, redlock.WithAutoExtend(true))
	require.NoError(t, err, "%q", name)
	return lease
}

// get asks for a file or data.
func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// A page is what has come of a stream so far, as the page in the browser puts it together.
type page struct {
	t      *testing.T
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	header   http.Header
	status   int
	rest     string // of an event that is not complete
	events   int    // updates of sections
	sections map[string]*rows
	stuck    chan struct{} // not nil: nothing is read until it is closed
	deadline time.Time
}

type rows struct {
	order []string
	byID  map[string]map[string]any
}

// look opens a page, for as long as the test lasts or until leave.
func look(t *testing.T, h http.Handler) *page {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &page{t: t, cancel: cancel, ended: make(chan struct{}), header: http.Header{}, sections: map[string]*rows{}}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil)
	go func() {
		defer close(p.ended)
		h.ServeHTTP(p, r)
	}()
	t.Cleanup(p.leave)
	return p
}

func (p *page) leave() {
	p.cancel()
	<-p.ended
}

// The page is the http.ResponseWriter of its stream.

func (p *page) Header() http.Header    { return p.header }
func (p *page) WriteHeader(status int) { p.status = status }
func (p *page) Flush()                 {}

func (p *page) SetWriteDeadline(at time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadline = at
	return nil
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	stuck, deadline := p.stuck, p.deadline
	p.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-time.After(time.Until(deadline)):
			return 0, context.DeadlineExceeded
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.rest + string(b)
	for {
		event, rest, complete := strings.Cut(text, "\n\n")
		if !complete {
			break
		}
		p.take(event)
		text = rest
	}
	p.rest = text
	return len(b), nil
}

func (p *page) take(event string) {
	name, data, _ := strings.Cut(event, "\n")
	name, data = strings.TrimPrefix(name, "event: "), strings.TrimPrefix(data, "data: ")
	if name == "tick" {
		return
	}
	p.events++
	var u struct {
		Order []string         `json:"order"`
		Empty bool             `json:"empty"`
		Rows  []map[string]any `json:"rows"`
	}
	if err := json.Unmarshal([]byte(data), &u); err != nil {
		p.t.Errorf("%v in %q", err, data)
	}
	s := p.sections[name]
	if s == nil {
		s = &rows{byID: map[string]map[string]any{}}
		p.sections[name] = s
	}
	for _, row := range u.Rows {
		s.byID[row["id"].(string)] = row
	}
	if u.Order != nil || u.Empty {
		s.order = u.Order
	}
}

// rows are those of a section, as they are shown now.
func (p *page) rows(section string) []map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sections[section]
	if s == nil {
		return nil
	}
	var all []map[string]any
	for _, id := range s.order {
		all = append(all, s.byID[id])
	}
	return all
}

// row is that with a name, and nil where there is none.
func (p *page) row(section, name string) map[string]any {
	for _, row := range p.rows(section) {
		if row["name"] == name {
			return row
		}
	}
	return nil
}

// fleet is what is told of the fleet.
func (p *page) fleet() map[string]any {
	if all := p.rows("fleet"); len(all) == 1 {
		return all[0]
	}
	return map[string]any{}
}

func (p *page) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events
}

// settle lets some intervals pass.
func settle() {
	time.Sleep(5 * interval)
	synctest.Wait()
}
