package gocronlock_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	gocronlock "github.com/quorate/quorate/scheduler/gocron"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis reports every connection that a fault breaks
	goleak.VerifyTestMain(m)
}

// bubble runs a test with fake time, three nodes in memory, and any number of replicas with gocron.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, &world{t: t, fleet: redlocktest.Start(t, 3), running: map[string]int{}})
	})
}

// A world is a fleet of nodes, and what its replicas have run.
type world struct {
	t     *testing.T
	fleet *redlocktest.Fleet

	mu      sync.Mutex
	runs    []run
	running map[string]int // by replica
	most    int            // that ran at one time
}

type run struct {
	replica string
	begun   time.Time // by the true clock
}

// did notes a run that takes some time.
func (w *world) did(replica string, lasts time.Duration) {
	w.mu.Lock()
	w.runs = append(w.runs, run{replica: replica, begun: time.Now()})
	w.running[replica]++
	all := 0
	for _, n := range w.running {
		all += n
	}
	w.most = max(w.most, all)
	w.mu.Unlock()
	time.Sleep(lasts)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[replica]--
}

// begun is all runs so far.
func (w *world) begun() []run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.runs)
}

// count is how many those are.
func (w *world) count() int { return len(w.begun()) }

// atOnce is how many ran at one time, at most.
func (w *world) atOnce() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// replica is one process of the service.
type replica struct {
	name   string
	clock  *redlocktest.Clock
	leases *redlock.Locker
	sched  gocron.Scheduler
}

// offset is the clock of a replica, as gocron wants it.
type offset struct {
	clockwork.Clock
	shown *redlocktest.Clock
}

func (o offset) Now() time.Time                  { return o.shown.Now() }
func (o offset) Since(t time.Time) time.Duration { return o.Now().Sub(t) }
func (o offset) Until(t time.Time) time.Duration { return t.Sub(o.Now()) }

// replica makes one, whose wall clock is so far ahead, with a scheduler that has not been started.
// Given nothing else, its scheduler has no locker.
func (w *world) replica(name string, ahead time.Duration, opts ...func(*replica) gocron.SchedulerOption) *replica {
	w.t.Helper()
	r := &replica{name: name, clock: redlocktest.NewClock()}
	r.clock.Skew(ahead)
	var err error
	r.leases, err = redlock.New(w.fleet.Host(name).Clients(), redlock.WithClock(r.clock), redlock.WithIdentity(name),
		redlock.WithLogger(quiet()))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, r.leases.Close()) })
	all := []gocron.SchedulerOption{gocron.WithClock(offset{clockwork.NewRealClock(), r.clock}), gocron.WithLocation(time.UTC)}
	for _, o := range opts {
		all = append(all, o(r))
	}
	r.sched, err = gocron.NewScheduler(all...)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { w.shutDown(r) })
	return r
}

// shutDown ends a scheduler when nothing of it runs any more: while something does, gocron looks at
// the time again and again without a pause, so that in a bubble none passes.
func (w *world) shutDown(r *replica) {
	for _, job := range r.sched.Jobs() {
		_ = r.sched.RemoveJob(job.ID())
	}
	for running := 1; running > 0; {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		w.mu.Lock()
		running = w.running[r.name]
		w.mu.Unlock()
	}
	_ = r.sched.Shutdown()
}

// locked gives a replica's scheduler a Locker.
func (w *world) locked(opts ...gocronlock.Option) func(*replica) gocron.SchedulerOption {
	return func(r *replica) gocron.SchedulerOption {
		l, err := gocronlock.NewLocker(r.leases, append([]gocronlock.Option{gocronlock.WithClock(r.clock.Now)}, opts...)...)
		require.NoError(w.t, err)
		return gocron.WithDistributedLocker(l)
	}
}

// add gives the replica the job, whose runs take some time.
func (w *world) add(r *replica, when gocron.JobDefinition, lasts time.Duration) {
	w.t.Helper()
	_, err := r.sched.NewJob(when, gocron.NewTask(func() { w.did(r.name, lasts) }), gocron.WithName("job"))
	require.NoError(w.t, err)
}

// second waits until a second has just begun, so that ticks to come can be counted.
func second() {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + time.Millisecond)))
}

// everySecond is a job at fixed times.
func everySecond() gocron.JobDefinition { return gocron.CronJob("* * * * * *", true) }

// byName is a locker as others are: a lock under the name of the job, released after the run.
type byName struct{ leases *redlock.Locker }

func (l byName) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	lease, err := l.leases.TryAcquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return unlocker{lease}, nil
}

type unlocker struct{ lease *redlock.Lease }

func (u unlocker) Unlock(ctx context.Context) error {
	return u.lease.Release(context.WithoutCancel(ctx))
}
