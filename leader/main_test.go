package leader_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis reports each dial that a fault makes fail
	goleak.VerifyTestMain(m)
}

const (
	name = "billing"
	ttl  = 3 * time.Second
	// atOnce is what redlock's wake-ups take at most where the network takes no time.
	atOnce = 10 * time.Millisecond
)

// inBubble runs a test with a fleet on fake time.
func inBubble(t *testing.T, test func(t *testing.T, f *redlocktest.Fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, redlocktest.Start(t, 3)) })
}

// A clock is one machine's: it shows the bubble's time, jumps when the machine sleeps, and its
// wall time may be wrong.
type clock struct {
	origin time.Time
	wrong  time.Duration
	slept  atomic.Int64
}

func newClock() *clock { return &clock{origin: time.Now()} }

func (c *clock) Now() time.Time { return time.Now().Add(c.wrong + time.Duration(c.slept.Load())) }
func (c *clock) Elapsed() time.Duration {
	return time.Since(c.origin) + time.Duration(c.slept.Load())
}
func (c *clock) sleep(d time.Duration) { c.slept.Add(int64(d)) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// newLocker makes the Locker of one process on a machine of its own.
func newLocker(t *testing.T, f *redlocktest.Fleet, host string, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	all := append([]redlock.Option{redlock.WithClock(newClock()), redlock.WithIdentity(host), redlock.WithLogger(quiet)}, opts...)
	locker, err := redlock.New(f.Host(host).Clients(), all...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = locker.Close() })
	return locker
}

func newElector(t *testing.T, locker *redlock.Locker, opts ...leader.Option) *leader.Elector {
	t.Helper()
	all := append([]leader.Option{leader.WithTTL(ttl), leader.WithLogger(quiet)}, opts...)
	e, err := leader.New(locker, name, all...)
	require.NoError(t, err)
	return e
}

// candidate makes an elector on a machine of its own.
func candidate(t *testing.T, f *redlocktest.Fleet, host string, opts ...leader.Option) *leader.Elector {
	t.Helper()
	return newElector(t, newLocker(t, f, host), opts...)
}

// assertTerm compares what is told of terms. A term of one's own is more than that: it can save.
func assertTerm(t *testing.T, want, got leader.Term) {
	t.Helper()
	said := func(term leader.Term) []any {
		return []any{term.Name, term.Number, term.Leader, term.Since, term.Address, term.Labels}
	}
	assert.Equal(t, said(want), said(got))
}

type lead = func(ctx context.Context, term leader.Term) error

// untilTold leads until the context ends.
func untilTold(ctx context.Context, _ leader.Term) error {
	<-ctx.Done()
	return ctx.Err()
}

// A run is a Run that goes on in the background. The test ends it, if nothing else did.
type run struct {
	stop   context.CancelFunc
	ended  chan struct{}
	err    error // once ended
	served *service
}

// A service records the terms of one elector.
type service struct {
	mu    sync.Mutex
	terms []served
	began chan leader.Term // one for each term
}

type served struct {
	term       leader.Term
	ctx        context.Context
	from       time.Time
	contextEnd time.Time // when the context ended, by its Done
	to         time.Time // zero while the function runs
}

func (s *service) all() []served {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]served(nil), s.terms...)
}

func (s *service) last() served {
	all := s.all()
	return all[len(all)-1]
}

func start(t *testing.T, e *leader.Elector, lead lead) *run {
	t.Helper()
	return startIn(t.Context(), t, e, lead)
}

func startIn(ctx context.Context, t *testing.T, e *leader.Elector, lead lead) *run {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	r := &run{stop: cancel, ended: make(chan struct{}), served: &service{began: make(chan leader.Term, 10_000)}}
	go func() {
		defer close(r.ended)
		r.err = e.Run(ctx, r.served.record(lead))
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	return r
}

func (s *service) record(lead lead) lead {
	return func(ctx context.Context, term leader.Term) error {
		s.mu.Lock()
		i := len(s.terms)
		s.terms = append(s.terms, served{term: term, ctx: ctx, from: time.Now()})
		s.mu.Unlock()
		context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.terms[i].contextEnd = time.Now()
		})
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.terms[i].to = time.Now()
		}()
		s.began <- term
		return lead(ctx, term)
	}
}

// leads waits for the next term of this elector.
func (r *run) leads(t *testing.T) leader.Term {
	t.Helper()
	select {
	case term := <-r.served.began:
		return term
	case <-time.After(time.Hour):
		t.Fatal("does not lead within an hour")
		return leader.Term{}
	}
}

// wait waits for the end of Run.
func (r *run) wait(t *testing.T) error {
	t.Helper()
	select {
	case <-r.ended:
		return r.err
	case <-time.After(time.Hour):
		t.Fatal("Run does not return within an hour")
		return nil
	}
}

// locked is on how many nodes somebody holds the lease, once all that is on its way has arrived.
func locked(f *redlocktest.Fleet) int {
	synctest.Wait()
	n := 0
	for i := range f.Len() {
		if _, ok := f.Get(i, redlock.DefaultKeyPrefix+name); ok {
			n++
		}
	}
	return n
}

// hidden is a client that does not show its address.
type hidden struct{ redis.UniversalClient }

// logs collects what was logged.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func newLogs() *logs { return &logs{} }

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// having is the lines with this text, once all that goes on has come to rest.
func (l *logs) having(text string) []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}
