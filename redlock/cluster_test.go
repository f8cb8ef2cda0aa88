package redlock_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// A mesh is three clusters of three shards, out of the nine nodes of a world: cluster c has the
// nodes 3c to 3c+2. The nodes know nothing of that; who serves what is told to the clients, as
// CLUSTER SLOTS would.
type mesh struct {
	*world

	mu     sync.Mutex
	owners [3][3]int // of each third of the slots, by cluster
}

const third = 16384/3 + 1

func clustered(t *testing.T, f func(t *testing.T, m *mesh)) {
	t.Helper()
	bubble(t, 9, func(t *testing.T, w *world) {
		m := &mesh{world: w}
		for c := range 3 {
			m.owners[c] = [3]int{3 * c, 3*c + 1, 3*c + 2}
		}
		f(t, m)
	})
}

func (m *mesh) slots(cluster int) []redis.ClusterSlot {
	m.mu.Lock()
	defer m.mu.Unlock()
	var slots []redis.ClusterSlot
	for i, node := range m.owners[cluster] {
		slots = append(slots, redis.ClusterSlot{
			Start: i * third, End: min(16383, (i+1)*third-1),
			Nodes: []redis.ClusterNode{{Addr: m.fleet.Addrs()[node]}},
		})
	}
	return slots
}

// clients are those of one host, one for each cluster.
func (m *mesh) clients(host string) []redis.UniversalClient {
	var clients []redis.UniversalClient
	for c := range 3 {
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs:                    m.fleet.Addrs()[3*c : 3*c+3],
			ClusterSlots:             func(context.Context) ([]redis.ClusterSlot, error) { return m.slots(c), nil },
			Dialer:                   m.fleet.Host(host).Dial,
			PoolSize:                 1000,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		m.t.Cleanup(func() { _ = client.Close() })
		clients = append(clients, client)
	}
	return clients
}

func (m *mesh) lockerOn(clients []redis.UniversalClient, host string, opts ...redlock.Option) *redlock.Locker {
	m.t.Helper()
	opts = append([]redlock.Option{
		redlock.WithClock(m.clock(host)), redlock.WithIdentity(host), redlock.WithLogger(quiet()),
	}, opts...)
	l, err := redlock.New(clients, opts...)
	require.NoError(m.t, err)
	m.t.Cleanup(func() { _ = l.Close() })
	return l
}

func (m *mesh) locker(host string, opts ...redlock.Option) *redlock.Locker {
	m.t.Helper()
	return m.lockerOn(m.clients(host), host, opts...)
}

// has are the nodes that hold a name's lock.
func (m *mesh) has(name string) []int {
	var nodes []int
	for i := range m.fleet.Len() {
		if _, ok := m.fleet.Get(i, redlock.DefaultKeyPrefix+name); ok {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// names are some of each shard, as the clusters are at first: names[i] are those of the i-th third.
func (m *mesh) names(l *redlock.Locker) (names [3][]string) {
	m.t.Helper()
	for i := range 30 {
		name := fmt.Sprintf("sku:%d", i)
		lease := m.acquire(l, name)
		synctest.Wait()
		nodes := m.has(name)
		require.Len(m.t, nodes, 3)
		for c, node := range nodes {
			require.Equal(m.t, nodes[0]+3*c, node, "one shard of each cluster, and with the same slots")
		}
		names[nodes[0]] = append(names[nodes[0]], name)
		require.NoError(m.t, lease.Release(m.t.Context()))
	}
	for shard := range names {
		require.NotEmpty(m.t, names[shard])
	}
	return names
}

// move gives a shard's slots to another server of its cluster, and nothing with them.
func (m *mesh) move(cluster, shard, to int, told ...[]redis.UniversalClient) {
	m.mu.Lock()
	m.owners[cluster][shard] = to
	m.mu.Unlock()
	for _, clients := range told {
		clients[cluster].(*redis.ClusterClient).ReloadState(m.t.Context())
	}
	time.Sleep(300 * time.Millisecond)
}

func TestTheNamesAreSpreadOverTheShardsOfEachCluster(t *testing.T) {
	clustered(t, func(t *testing.T, m *mesh) {
		a, b := m.locker("a"), m.locker("b")
		name := m.names(a)[1][0]
		lease := m.acquire(a, name, redlock.WithAutoExtend(true))
		require.NoError(t, lease.Save(t.Context(), []byte("kept")))
		_, err := b.TryAcquire(t.Context(), name)
		require.ErrorIs(t, err, redlock.ErrTaken)
		waiting := make(chan *redlock.Lease)
		go func() { waiting <- m.acquire(b, name) }()
		time.Sleep(time.Minute)
		require.NoError(t, lease.Err())
		released := time.Now()
		require.NoError(t, lease.Release(t.Context()))
		next := <-waiting
		require.Zero(t, time.Since(released), "it was woken")
		require.Greater(t, next.Token(), lease.Token())
		require.Equal(t, "kept", string(next.State()))
		require.NoError(t, next.Release(t.Context()))
	})
}

func TestAShardThatIsDownOrForgotConcernsItsOwnNamesOnly(t *testing.T) {
	clustered(t, func(t *testing.T, m *mesh) {
		a := m.locker("a")
		names := m.names(a)
		held := m.acquire(a, names[0][0], redlock.WithAutoExtend(true))
		m.fleet.Stop(0)
		for _, of := range names {
			require.NoError(t, m.acquire(a, of[len(of)-1]).Release(t.Context()), "two clusters suffice")
		}
		m.fleet.RestartEmpty(0)
		time.Sleep(2 * time.Second)
		status, err := a.Inspect(t.Context(), names[0][0])
		require.NoError(t, err)
		require.Positive(t, status.Nodes[0].Quarantine)
		require.Zero(t, status.Nodes[1].Quarantine)
		status, err = a.Inspect(t.Context(), names[1][0])
		require.NoError(t, err)
		require.Zero(t, status.Nodes[0].Quarantine, "another shard of the same cluster")
		time.Sleep(redlock.DefaultMaxTTL)
		status, err = a.Inspect(t.Context(), names[0][0])
		require.NoError(t, err)
		require.Zero(t, status.Nodes[0].Quarantine)
		require.Equal(t, held.Owner(), status.Nodes[0].Holder, "and it was given its lock back")
		require.NoError(t, held.Release(t.Context()))
	})
}

func TestASlotThatComesFromAServerWhichForgotDoesNotCountForAWhile(t *testing.T) {
	for _, who := range []string{"an old client", "a client that starts afterwards"} {
		t.Run(who, func(t *testing.T) {
			clustered(t, func(t *testing.T, m *mesh) {
				forA, forB := m.clients("a"), m.clients("b")
				a, b := m.lockerOn(forA, "a"), m.lockerOn(forB, "b")
				name := m.names(a)[0][0]
				require.NoError(t, m.acquire(b, name).Release(t.Context()))
				lease := m.acquire(a, name)
				for c := range 2 { // two of the lease's three votes are forgotten
					m.fleet.RestartEmpty(3 * c)
					m.move(c, 0, 3*c+1, forA, forB)
				}
				if who != "an old client" {
					// One slot stays, so that the server is known to be of the cluster.
					for c := range 2 {
						m.move(c, 2, 3*c)
					}
					b = m.locker("c")
				}
				next := m.acquire(b, name)
				require.ErrorIs(t, lease.Err(), redlock.ErrLeaseExpired)
				require.Greater(t, next.Token(), lease.Token())
				require.NoError(t, next.Release(t.Context()))
			})
		})
	}
}

func TestASlotThatMovedCountsAgainAfterTheMaximumTTL(t *testing.T) {
	clustered(t, func(t *testing.T, m *mesh) {
		clients := m.clients("a")
		a := m.lockerOn(clients, "a")
		name := m.names(a)[0][0]
		m.move(0, 0, 1, clients)
		quarantine := func() time.Duration {
			status, err := a.Inspect(t.Context(), name)
			require.NoError(t, err)
			return status.Nodes[0].Quarantine
		}
		require.Positive(t, quarantine())
		lease := m.acquire(a, name, redlock.WithAutoExtend(true))
		time.Sleep(redlock.DefaultMaxTTL + time.Second)
		require.Zero(t, quarantine())
		require.Equal(t, []int{1, 3, 6}, m.has(name))
		require.NoError(t, lease.Release(t.Context()))
	})
}

// moved answers steps on one server as a server does that has given its slots away.
type moved struct {
	mu    sync.Mutex
	addr  string // of the server
	to    string
	asked int
}

type movedError string

func (e movedError) Error() string { return string(e) }
func (e movedError) RedisError()   {}

func (h *moved) on(client *redis.Client) { client.AddHook(movedHook{h, client.Options().Addr}) }

type movedHook struct {
	*moved

	at string
}

func (h movedHook) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (h movedHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (h movedHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.mu.Lock()
		gone := h.at == h.addr && strings.HasPrefix(cmds[0].Name(), "eval")
		if gone {
			h.asked++
		}
		h.mu.Unlock()
		if !gone {
			return next(ctx, cmds)
		}
		for _, cmd := range cmds {
			cmd.SetErr(movedError("MOVED 1 " + h.to))
		}
		return movedError("MOVED 1 " + h.to)
	}
}

func TestAStepThatAServerNoLongerServesIsTakenToTheOneThatDoes(t *testing.T) {
	clustered(t, func(t *testing.T, m *mesh) {
		var hook moved
		clients := m.clients("a")
		clients[0].(*redis.ClusterClient).OnNewNode(hook.on)
		a := m.lockerOn(clients, "a")
		name := m.names(a)[0][0]

		hook.mu.Lock()
		hook.addr, hook.to = m.fleet.Addrs()[0], m.fleet.Addrs()[1]
		hook.mu.Unlock()
		m.move(0, 0, 1) // the client is not told
		lease := m.acquire(a, name)
		time.Sleep(time.Second)
		require.Equal(t, []int{1, 3, 6}, m.has(name))
		require.NoError(t, lease.Release(t.Context()))
		time.Sleep(time.Second)
		require.Empty(t, m.has(name))
		hook.mu.Lock()
		defer hook.mu.Unlock()
		require.Equal(t, 1, hook.asked)
	})
}

func TestAClusterThatCannotBeReachedIsANodeThatDoesNotAnswer(t *testing.T) {
	clustered(t, func(t *testing.T, m *mesh) {
		clients := m.clients("a")
		gone := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs:  m.fleet.Addrs()[:3],
			Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed },
			// go-redis dials five times with a pause each
			DialerRetries: 1,
		})
		t.Cleanup(func() { _ = gone.Close() })
		clients[0] = gone
		a := m.lockerOn(clients, "a")
		begin := time.Now()
		lease := m.acquire(a, "sku:42")
		require.Less(t, time.Since(begin), 2*time.Second)
		require.NoError(t, lease.Release(t.Context()))
		reports, err := a.Check(t.Context())
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		require.Error(t, reports[0].Err)
		require.True(t, reports[1].Up)
	})
}

func TestAServerOfTwoClustersIsRefused(t *testing.T) {
	clustered(t, func(t *testing.T, m *mesh) {
		m.owners[1][2] = 2 // of cluster 0
		_, err := m.locker("a").Acquire(t.Context(), "sku:42")
		require.ErrorIs(t, err, redlock.ErrSameServer)
		require.ErrorContains(t, err, m.fleet.Addrs()[2])

		clients := m.clients("b")
		shared := redis.NewClusterClient(&redis.ClusterOptions{Addrs: m.fleet.Addrs()[2:5]})
		defer func() { _ = shared.Close() }()
		_, err = redlock.New([]redis.UniversalClient{clients[0], shared, clients[2]})
		require.ErrorIs(t, err, redlock.ErrSameServer)
		plain := redis.NewClient(&redis.Options{Addr: m.fleet.Addrs()[0]})
		defer func() { _ = plain.Close() }()
		_, err = redlock.New([]redis.UniversalClient{clients[0], plain, clients[2]})
		require.ErrorIs(t, err, redlock.ErrSameServer)
	})
}

func TestARingIsRefused(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{})
	defer func() { _ = ring.Close() }()
	_, err := redlock.New([]redis.UniversalClient{ring})
	require.ErrorIs(t, err, redlock.ErrInvalidOption)
}

func TestCheckReportsEveryShard(t *testing.T) {
	clustered(t, func(t *testing.T, m *mesh) {
		a := m.locker("a")
		m.names(a)
		reports, err := a.Check(t.Context())
		require.NoError(t, err)
		require.Len(t, reports, 3)
		for c, r := range reports {
			require.True(t, r.Up)
			require.Equal(t, "cluster "+m.fleet.Addrs()[3*c], r.Node)
			require.Equal(t, "cluster", r.Role)
			require.Len(t, r.Shards, 3)
			for i, s := range r.Shards {
				require.Equal(t, m.fleet.RunID(3*c+i), s.RunID)
				require.Equal(t, "master", s.Role)
			}
		}
		// One shard of each cluster is down: other thirds of the slots each.
		m.fleet.Stop(0)
		m.fleet.Stop(4)
		m.fleet.Stop(8)
		reports, err = a.Check(t.Context())
		require.Error(t, err)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		require.False(t, reports[0].Up)
		require.Error(t, reports[0].Shards[0].Err)
		m.fleet.Stop(3)
		_, err = a.Check(t.Context())
		require.ErrorIs(t, err, redlock.ErrNoQuorum, "for the first third")
	})
}

func TestANodeMayBeAClusterAndAnotherAServer(t *testing.T) {
	clustered(t, func(t *testing.T, m *mesh) {
		clients := m.clients("a")
		clients[2] = m.fleet.Host("a").Clients()[6]
		a := m.lockerOn(clients, "a")
		for i := range 10 {
			lease := m.acquire(a, fmt.Sprintf("sku:%d", i))
			synctest.Wait()
			require.Len(t, m.has(lease.Name()), 3)
			require.NoError(t, lease.Release(t.Context()))
		}
	})
}
