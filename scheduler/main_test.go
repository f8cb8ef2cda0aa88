package scheduler_test

import (
	"context"
	"fmt"
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

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis reports each dial that a fault makes fail
	goleak.VerifyTestMain(m)
}

// bubble runs a test with fake time and a fleet of three nodes in memory.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, &world{t: t, fleet: redlocktest.Start(t, 3), start: time.Now()})
	})
}

// A world is a fleet with replicas of a service, and all that they ran.
type world struct {
	t     *testing.T
	fleet *redlocktest.Fleet
	start time.Time

	mu   sync.Mutex
	runs []ran
}

// A ran is a run of a tick.
type ran struct {
	scheduler.Run
	at time.Time // true time
}

// A replica is one process of the service, on a machine of its own.
type replica struct {
	w      *world
	name   string
	host   *redlocktest.Host
	clock  *redlocktest.Clock
	locker *redlock.Locker
	sched  *scheduler.Scheduler
	calls  atomic.Int64 // of scripts on jobs' registers, on all nodes

	mu     sync.Mutex
	events []scheduler.Event
	stop   context.CancelFunc
	ended  chan error
}

func (w *world) replica(name string, opts ...scheduler.Option) *replica {
	w.t.Helper()
	r := &replica{w: w, name: name, host: w.fleet.Host(name), clock: redlocktest.NewClock()}
	clients := r.host.Clients()
	for node, c := range clients {
		c.(*redis.Client).AddHook(&hook{r: r, node: node})
	}
	var err error
	r.locker, err = redlock.New(clients, redlock.WithClock(r.clock), redlock.WithIdentity(name), redlock.WithLogger(quiet()))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, r.locker.Close()) })
	r.sched, err = scheduler.New(r.locker, append([]scheduler.Option{
		scheduler.WithClock(r.clock), scheduler.WithIdentity(name), scheduler.WithLogger(quiet()),
		scheduler.WithObserver(r.observe),
	}, opts...)...)
	require.NoError(w.t, err)
	return r
}

// replicas are three that run the same job.
func (w *world) replicas(spec string, f func(ctx context.Context, r *replica, run scheduler.Run) error, opts ...scheduler.JobOption) (a, b, c *replica) {
	w.t.Helper()
	var all []*replica
	for _, name := range []string{"a", "b", "c"} {
		r := w.replica(name)
		r.add(spec, f, opts...)
		all = append(all, r)
	}
	return all[0], all[1], all[2]
}

func (r *replica) observe(e scheduler.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// add adds the job "tick", which is recorded and then does f.
func (r *replica) add(spec string, f func(ctx context.Context, r *replica, run scheduler.Run) error, opts ...scheduler.JobOption) {
	r.w.t.Helper()
	require.NoError(r.w.t, r.sched.Add("tick", spec, func(ctx context.Context, run scheduler.Run) error {
		r.w.mu.Lock()
		r.w.runs = append(r.w.runs, ran{run, time.Now()})
		r.w.mu.Unlock()
		if f == nil {
			return nil
		}
		return f(ctx, r, run)
	}, opts...))
}

// run starts the replicas. They are stopped at the end of the test.
func run(replicas ...*replica) {
	for _, r := range replicas {
		var ctx context.Context
		ctx, r.stop = context.WithCancel(context.Background())
		ended := make(chan error, 1)
		r.ended = ended
		go func() { ended <- r.sched.Run(ctx) }()
		r.w.t.Cleanup(r.shutDown)
	}
	synctest.Wait()
}

// shutDown stops a replica, and waits for it.
func (r *replica) shutDown() {
	if r.ended != nil {
		r.stop()
		require.NoError(r.w.t, <-r.ended)
		r.ended = nil
	}
}

// count counts the events of an outcome, and of a reason if one is given.
func (r *replica) count(o scheduler.Outcome, reason ...scheduler.Reason) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		if e.Outcome == o && (len(reason) == 0 || e.Reason == reason[0]) {
			n += e.Ticks
		}
	}
	return n
}

func (r *replica) last(o scheduler.Outcome) (last scheduler.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Outcome == o {
			last = e
		}
	}
	return last
}

func (w *world) ran() []ran {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]ran(nil), w.runs...)
}

// by counts the runs of a replica.
func (w *world) by(r *replica) int {
	n := 0
	for _, run := range w.ran() {
		if run.Replica == r.name {
			n++
		}
	}
	return n
}

// times counts the runs of each tick, and checks what holds whatever happens: no tick was run
// twice, and tokens increase in the order of the runs.
func (w *world) times() map[time.Duration]int {
	w.t.Helper()
	times := map[time.Duration]int{}
	var last redlock.Token
	for _, run := range w.ran() {
		tick := run.Scheduled.Sub(w.start)
		times[tick]++
		assert.Equal(w.t, 1, times[tick], "runs of tick %v", tick)
		assert.Greater(w.t, run.Token, last, "tokens increase from run to run")
		last = run.Token
	}
	return times
}

// eachOnce checks that each of the ticks, from the first to the last, was run exactly once.
func (w *world) eachOnce(first, last, interval time.Duration) {
	w.t.Helper()
	times := w.times()
	for tick := first; tick <= last; tick += interval {
		assert.Equal(w.t, 1, times[tick], "runs of tick %v", tick)
	}
}

// at waits until some time after the start of the test.
func (w *world) at(d time.Duration) {
	time.Sleep(time.Until(w.start.Add(d)))
	synctest.Wait()
}

// A hook looks at what a replica sends to a node, before it is sent.
type hook struct {
	r    *replica
	node int
}

// onSave, when it is set, is called before each save of a job's register is sent to a node.
var onSave atomic.Pointer[func(r *replica, node int)]

func (h *hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.look(cmd)
		return next(ctx, cmd)
	}
}

func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			h.look(cmd)
		}
		return next(ctx, cmds)
	}
}

func (h *hook) look(cmd redis.Cmder) {
	args := cmd.Args()
	if cmd.Name() != "evalsha" || !strings.Contains(fmt.Sprint(args[3]), "job/") {
		return
	}
	h.r.calls.Add(1)
	// EVALSHA sha 2 lock fence owner token sequence state: only what saves has a state.
	if f := onSave.Load(); f != nil && len(args) > 8 {
		if _, saves := args[8].([]byte); saves {
			(*f)(h.r, h.node)
		}
	}
}

// beforeSaves sets onSave, until the test or the caller of what it returns ends that.
func beforeSaves(t *testing.T, f func(r *replica, node int)) (end func()) {
	onSave.Store(&f)
	end = func() { onSave.Store(nil) }
	t.Cleanup(end)
	return end
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
