package browser

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

const actionsToken = "correct-horse-battery-staple"

// A stage is a fleet with replicas, and a dashboard that one of them serves.
type stage struct {
	t        *testing.T
	fleet    *redlocktest.Fleet
	locker   *redlock.Locker // of the replica with the dashboard
	recorder *dashboard.Recorder
	url      string
	down     atomic.Bool // the server answers 502, as a proxy does whose service is gone
	server   *httptest.Server
	watch    func(*http.Request) // is told of each request, if set before the first
}

// newStage starts a fleet of three nodes and a dashboard under a path of its own.
func newStage(t *testing.T, opts ...dashboard.Option) *stage {
	t.Helper()
	s := &stage{t: t, fleet: redlocktest.Start(t, 3), recorder: dashboard.NewRecorder()}
	s.locker = s.newLocker("web-1", redlock.WithObserver(s.recorder.Observe))
	s.serve(opts...)
	return s
}

// serve puts up a dashboard.
func (s *stage) serve(opts ...dashboard.Option) {
	s.t.Helper()
	all := append([]dashboard.Option{
		dashboard.WithInterval(250 * time.Millisecond), dashboard.WithLogger(quiet), dashboard.WithContention(s.recorder),
	}, opts...)
	board, err := dashboard.New(s.locker, all...)
	require.NoError(s.t, err)
	mux := http.NewServeMux()
	mux.Handle("/ops/quorate/", http.StripPrefix("/ops/quorate", board))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.down.Load() {
			http.Error(w, "bad gateway", http.StatusBadGateway)
			return
		}
		if s.watch != nil {
			s.watch(r)
		}
		mux.ServeHTTP(w, r)
	}))
	s.server = server
	s.t.Cleanup(func() {
		require.NoError(s.t, board.Close()) // ends the streams, for which the server waits
		server.Close()
	})
	s.url = server.URL + "/ops/quorate/"
}

func (s *stage) newLocker(host string, opts ...redlock.Option) *redlock.Locker {
	s.t.Helper()
	all := append([]redlock.Option{redlock.WithIdentity(host), redlock.WithLogger(quiet)}, opts...)
	locker, err := redlock.New(s.fleet.Host(host).Clients(), all...)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = locker.Close() })
	return locker
}

// campaign has a candidate run until the test ends, or until what it returns is called.
func (s *stage) campaign(locker *redlock.Locker, election string, opts ...leader.Option) (e *leader.Elector, stop func()) {
	s.t.Helper()
	all := append([]leader.Option{leader.WithLogger(quiet)}, opts...)
	e, err := leader.New(locker, election, all...)
	require.NoError(s.t, err)
	return e, s.until(func(ctx context.Context) error {
		return e.Run(ctx, func(ctx context.Context, _ leader.Term) error {
			<-ctx.Done()
			return nil
		})
	})
}

func (s *stage) until(run func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	s.t.Cleanup(stop)
	return stop
}

// schedule runs some jobs on a replica.
func (s *stage) schedule(locker *redlock.Locker, add func(*scheduler.Scheduler)) *scheduler.Scheduler {
	s.t.Helper()
	sched, err := scheduler.New(locker, scheduler.WithLogger(quiet), scheduler.WithIdentity(locker.Identity()), scheduler.WithDrainTimeout(0))
	require.NoError(s.t, err)
	add(sched)
	s.until(sched.Run)
	return sched
}

var errBank = errors.New("bank: 503 Service Unavailable, try again later")

// work is a job's function that takes some time.
func work(d time.Duration, result error) func(context.Context, scheduler.Run) error {
	return func(ctx context.Context, _ scheduler.Run) error {
		select {
		case <-time.After(d):
			return result
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hold holds a name until the test ends.
func (s *stage) hold(locker *redlock.Locker, name string) *redlock.Lease {
	s.t.Helper()
	lease, err := locker.Acquire(s.t.Context(), name, redlock.WithAutoExtend(true))
	require.NoError(s.t, err)
	return lease
}

// town is a stage with something of everything.
func town(t *testing.T, opts ...dashboard.Option) *stage {
	t.Helper()
	s := &stage{t: t, fleet: redlocktest.Start(t, 3), recorder: dashboard.NewRecorder()}
	s.locker = s.newLocker("web-1", redlock.WithObserver(s.recorder.Observe))
	second, third := s.newLocker("web-2"), s.newLocker("web-3")
	billing, _ := s.campaign(s.locker, "billing", leader.WithAddress("10.0.1.7:8443"), leader.WithLabels(map[string]string{"zone": "a"}))
	s.campaign(second, "search-index", leader.WithAddress("10.0.2.4:8443"))
	sched := s.schedule(s.locker, func(sched *scheduler.Scheduler) {
		require.NoError(t, sched.Add("sweep-sessions", "@every 1s", work(30*time.Millisecond, nil)))
		require.NoError(t, sched.Add("settle-payments", "@every 2s", work(40*time.Millisecond, errBank)))
		require.NoError(t, sched.Add("reindex", "@every 1s", work(2500*time.Millisecond, nil)))
		require.NoError(t, sched.Add("nightly-report", "0 2 * * *", work(time.Second, nil)))
	})
	s.schedule(third, func(sched *scheduler.Scheduler) {
		require.NoError(t, sched.Add("sweep-sessions", "@every 1s", work(30*time.Millisecond, nil)))
		require.NoError(t, sched.Add("mail-digest", "@every 3s", work(20*time.Millisecond, nil)))
	})
	for _, name := range []string{"sku:42", "sku:1007", "cart:9f3c", "import/customers"} {
		s.hold(third, name)
	}
	s.contend("ledger:eu")
	s.serve(append([]dashboard.Option{dashboard.WithElectors(billing), dashboard.WithScheduler(sched)}, opts...)...)
	return s
}

// contend has three goroutines of this process wait for a name all the time.
func (s *stage) contend(name string) {
	for range 3 {
		s.until(func(ctx context.Context) error {
			for ctx.Err() == nil {
				_ = s.locker.Do(ctx, name, func(ctx context.Context, _ *redlock.Lease) error {
					return work(35*time.Millisecond, nil)(ctx, scheduler.Run{})
				})
			}
			return nil
		})
	}
}
