package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Locker acquires leases from a fleet of nodes. It is safe for use by many goroutines; a
// process needs one for each fleet. Make it with New.
type Locker struct {
	settings  settings
	process   string // in the lines of names
	kept      string // what a lock key holds that is kept for it
	passes    atomic.Uint64
	fleet     *fleet
	telemetry *telemetry
	tokens    tokens
	queues    *queues
	watches   *watches
	life      context.Context // ends with Close
	endLife   context.CancelFunc
	calls     sync.WaitGroup // under way; Close lets them withdraw what they have
	// background are calls into clients that outlive the caller who asked for them.
	background sync.WaitGroup

	mu     sync.Mutex
	held   map[*Lease]struct{}
	closed bool
	vigil  *time.Timer
	awake  wakefulness
	ended  chan struct{} // closed when Close is done
}

// New makes a Locker over independent Redis masters, one client for each; or over independent Redis
// Clusters, with a *redis.ClusterClient for each. The number of nodes should be odd; any minority of
// them may be down. The clients stay the caller's, in their default options or any others, and may
// serve other purposes as well.
//
// Nothing is asked of the nodes yet: the first use checks them. The errors are ErrNoNodes,
// ErrSameServer, ErrInvalidOption, ErrTTLTooLong and ErrTTLTooShort.
//
// New adds a hook to each client, which go-redis cannot take away again: make one Locker for a
// process, not one for each lease.
func New(nodes []redis.UniversalClient, opts ...Option) (*Locker, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	if err := checkClients(nodes); err != nil {
		return nil, err
	}
	if len(nodes)%2 == 0 {
		s.logger.Warn("redlock: an even number of nodes tolerates no more failures than one node less", "nodes", len(nodes))
	}
	t, err := newTelemetry(&s)
	if err != nil {
		return nil, fmt.Errorf("redlock: create metrics: %w", err)
	}
	f := &fleet{
		clock: s.clock, logger: s.logger, telemetry: t,
		maxTTL: s.maxTTL, nodeTimeout: s.nodeTimeout, trustPersistence: s.trustPersistence,
	}
	for i, client := range nodes {
		n := newNode(i, client, f)
		f.nodes = append(f.nodes, n)
		f.lanes = append(f.lanes, newLane(n, f))
	}
	if err := t.observe(&s, f); err != nil {
		return nil, fmt.Errorf("redlock: create metrics: %w", err)
	}
	life, endLife := context.WithCancel(context.Background())
	process := newProcess()
	return &Locker{
		process: process, kept: keptFor + process,
		settings: s, fleet: f, telemetry: t,
		queues: newQueues(), watches: newWatches(f.lanes, s.keyPrefix, process),
		life: life, endLife: endLife, ended: make(chan struct{}),
		held: map[*Lease]struct{}{},
	}, nil
}

func checkClients(nodes []redis.UniversalClient) error {
	if len(nodes) == 0 {
		return fmt.Errorf("redlock: %w: give New a client for each node", ErrNoNodes)
	}
	clients := map[redis.UniversalClient]int{}
	addrs := map[string]int{}
	for i, client := range nodes {
		if isNil(client) {
			return fmt.Errorf("redlock: %w: the client of node %d is nil", ErrInvalidOption, i)
		}
		if first, ok := clients[client]; ok {
			return fmt.Errorf("redlock: %w: nodes %d and %d share a client; give each server once", ErrSameServer, first, i)
		}
		clients[client] = i
		if _, ok := client.(*redis.Ring); ok {
			return fmt.Errorf("redlock: %w: the client of node %d is a Ring, which moves keys when a shard is down, and so forgets locks; give each server as a node, or a Redis Cluster", ErrInvalidOption, i)
		}
		for _, addr := range addrsOf(client) {
			if strings.Contains(addr, "://") {
				return fmt.Errorf("redlock: %w: the address of node %d is a URL; make its options with redis.ParseURL", ErrInvalidOption, i)
			}
			if first, ok := addrs[addr]; ok && first != i && addr != failoverAddr {
				return fmt.Errorf("redlock: %w: nodes %d and %d both have address %s; give each server once", ErrSameServer, first, i, addr)
			}
			addrs[addr] = i
		}
	}
	return nil
}

// addrsOf are the addresses that a client was made with, as far as they are known to be those of servers.
func addrsOf(client redis.UniversalClient) []string {
	switch c := client.(type) {
	case *redis.Client:
		if c.Options().Dialer != nil {
			return []string{c.Options().Addr}
		}
	case *redis.ClusterClient:
		return c.Options().Addrs
	}
	return nil
}

// isNil reports whether there is no client, also where a nil pointer was put into the interface.
func isNil(client redis.UniversalClient) bool {
	switch c := client.(type) {
	case nil:
		return true
	case *redis.Client:
		return c == nil
	case *redis.ClusterClient:
		return c == nil
	case *redis.Ring:
		return c == nil
	}
	return false
}

// failoverAddr is what go-redis calls the address of every client that asks a Sentinel.
const failoverAddr = "FailoverClient"

// Do acquires the name, runs fn with a context that ends when ctx or the lease ends, and
// releases the name when fn has returned. It waits for the name as Acquire does, and extends
// the lease automatically.
//
// It returns fn's error. If the lease ended before fn returned, the error says so as well
// (ErrLeaseExpired, ErrLeaseLost, ErrExtensionLimit), also where fn returned nil: then part of
// fn ran without protection. A release that fails is no error of Do: the work is done, and the
// key runs out by itself.
func (l *Locker) Do(ctx context.Context, name string, fn func(ctx context.Context, lease *Lease) error, opts ...LeaseOption) error {
	if fn == nil {
		return fmt.Errorf("redlock: do %q: %w: the function is nil", name, ErrInvalidOption)
	}
	lease, err := l.acquire(ctx, ctx, name, true, extensionOn, opts)
	if err != nil {
		return err
	}
	defer func() {
		if err := lease.Release(context.WithoutCancel(ctx)); errors.Is(err, ErrNoQuorum) {
			l.settings.logger.Warn("redlock: release did not reach a quorum; the name is free again at the latest when its TTL ends", "name", name, "error", err)
		}
	}()
	err = fn(lease.Context(), lease)
	loss := lease.Err()
	if loss == nil || errors.Is(loss, ErrReleased) || errors.Is(err, loss) {
		return err // it lasted, fn ended it itself, or fn tells of its end
	}
	return errors.Join(err, loss)
}

// Close ends the Locker: it stops acquiring, ends the contexts of all leases with ErrClosed,
// and returns when nothing of the Locker runs any more. Leases that were not released keep
// their keys until the TTL ends, because nobody can tell here whether their work has stopped.
//
// A node that hangs can hold Close up for as long as its client's read and dial timeouts allow.
func (l *Locker) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		<-l.ended
		return nil
	}
	l.closed = true
	l.endLife()
	leases := make([]*Lease, 0, len(l.held))
	for lease := range l.held {
		leases = append(leases, lease)
	}
	if l.vigil != nil {
		l.vigil.Stop()
	}
	l.mu.Unlock()
	for _, lease := range leases {
		lease.finish(ErrClosed, nil)
	}
	l.calls.Wait()
	l.watches.close() // its wake-ups need the lanes
	l.fleet.close()
	l.background.Wait()
	l.telemetry.close()
	close(l.ended)
	return nil
}

// Identity is the readable part of the owner of this Locker's leases: see WithIdentity.
func (l *Locker) Identity() string { return l.settings.identity }

// Done is closed when Close is called: who pauses between two uses of the Locker can stop.
func (l *Locker) Done() <-chan struct{} { return l.life.Done() }

// FenceTTL is how long a name's fence and state outlive its last use: WithFenceTTL.
func (l *Locker) FenceTTL() time.Duration { return l.settings.fenceTTL }

func (l *Locker) errClosed(op, name string) error {
	return fmt.Errorf("redlock: %s %q: %w", op, name, ErrClosed)
}

// begin begins a call that Close interrupts, by the context, and waits for.
func (l *Locker) begin(ctx context.Context, op, name string) (_ context.Context, end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, l.errClosed(op, name)
	}
	l.calls.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.life, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		l.calls.Done()
	}, nil
}

// sending has Close wait until a release is on its way: until sent is called, for the first time.
func (l *Locker) sending() (sent func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return func() {}
	}
	l.calls.Add(1)
	return sync.OnceFunc(l.calls.Done)
}

// hold takes note of a lease that was won.
func (l *Locker) hold(lease *Lease) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.errClosed("acquire", lease.name)
	}
	l.held[lease] = struct{}{}
	l.watchSleep()
	return nil
}

func (l *Locker) forget(lease *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, lease)
}
