package redlocktest_test

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestSeveralBubblesOneAfterTheOtherEachHaveAFleet(t *testing.T) {
	for range 3 {
		inBubble(t, 5, func(t *testing.T, f *redlocktest.Fleet) {
			start := time.Now()
			for _, c := range f.Clients() {
				require.NoError(t, c.Ping(t.Context()).Err())
			}
			assert.Zero(t, time.Since(start), "a healthy fleet takes no time")
		})
	}
}

func TestEachNodeHasAnAddressAndAMemoryOfItsOwn(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, f *redlocktest.Fleet) {
		require.Equal(t, 3, f.Len())
		assert.Equal(t, []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"}, f.Addrs())
		assert.Equal(t, "redis://10.0.0.2:6379", f.URLs()[1])

		clients := f.Clients()
		require.Len(t, clients, 3)
		set(t, clients[1], "k", "v", 0)
		assert.Empty(t, f.Keys(0))
		assert.Equal(t, []string{"k"}, f.Keys(1))
		assert.Empty(t, f.Keys(2))
		value, ok := f.Get(1, "k")
		assert.True(t, ok)
		assert.Equal(t, "v", value)
		_, ok = f.Get(0, "k")
		assert.False(t, ok)
	})
}

func TestClientsAreInDefaultOptionsButForMaintenanceNotifications(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		got := f.Clients()[0].(*redis.Client).Options()
		plain := redis.NewClient(&redis.Options{Addr: f.Addrs()[0]})
		defer plain.Close()
		want := plain.Options()
		assert.Equal(t, want.ReadTimeout, got.ReadTimeout)
		assert.Equal(t, want.MaxRetries, got.MaxRetries)
		assert.Equal(t, want.ContextTimeoutEnabled, got.ContextTimeoutEnabled)
		assert.Equal(t, 3, got.Protocol)
	})
}

func TestScriptsRunAsRealLua(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := f.Clients()[0]
		script := redis.NewScript(`
			local old = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2], 'GET')
			return {old, redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1])}`)
		_, err := script.EvalSha(t.Context(), c, []string{"k"}, "a", 8000).Result()
		require.True(t, redis.HasErrorPrefix(err, "NOSCRIPT"))

		before := f.Commands(0)
		got, err := script.Eval(t.Context(), c, []string{"k"}, "a", 8000).Slice()
		require.NoError(t, err)
		assert.Equal(t, []any{nil, int64(8000), "a"}, got)
		got, err = script.EvalSha(t.Context(), c, []string{"k"}, "b", 8000).Slice()
		require.NoError(t, err)
		assert.Equal(t, []any{"a", int64(8000), "a"}, got)
		assert.Equal(t, 2, f.Commands(0)-before, "a script is one command")
	})
}

func TestAScriptMayAskForInfoAndRole(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		got, err := f.Clients()[0].Eval(t.Context(), `
			return {redis.call('ROLE')[1], redis.call('INFO', 'server')}`, nil).Slice()
		require.NoError(t, err)
		assert.Equal(t, "master", got[0])
		assert.Contains(t, got[1], "run_id:"+f.RunID(0))
	})
}

func TestPublishedMessagesReachSubscribers(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		sub := f.Clients()[0].Subscribe(t.Context(), "wake")
		defer sub.Close()
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)

		n, err := f.Clients()[0].Eval(t.Context(), `return redis.call('PUBLISH', KEYS[1], 'up')`, []string{"wake"}).Int()
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		msg, err := sub.ReceiveMessage(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "up", msg.Payload)
	})
}

func TestTransactionsWork(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		cmds, err := f.Clients()[0].TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Set(t.Context(), "k", "v", time.Second)
			p.Eval(t.Context(), `return redis.call('PTTL', KEYS[1])`, []string{"k"})
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, int64(1000), cmds[1].(*redis.Cmd).Val())
	})
}

func TestCloseEndsClientsAndMayBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := redlocktest.New(3)
		require.NoError(t, err)
		clients := f.Clients()
		require.NoError(t, clients[0].Ping(t.Context()).Err())
		require.NoError(t, clients[1].Close(), "a client may be closed by its user")
		f.Hang(0)
		require.NoError(t, f.Close())
		require.NoError(t, f.Close())
		require.ErrorIs(t, clients[0].Ping(t.Context()).Err(), redis.ErrClosed)

		f.Restart(0)
		assert.Empty(t, f.RunID(0), "nothing starts after Close")
		late := f.Clients()
		require.ErrorIs(t, late[2].Ping(t.Context()).Err(), redis.ErrClosed)
		_, err = f.Host("late").Dial(t.Context(), "tcp", f.Addrs()[0])
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestBadArgumentsAreReported(t *testing.T) {
	_, err := redlocktest.New(0)
	require.ErrorContains(t, err, "give at least 1")
	_, err = redlocktest.New(1, redlocktest.WithUptime(-time.Second))
	require.ErrorContains(t, err, "negative")

	var tb fakeTB
	assert.Nil(t, redlocktest.Start(&tb, -1))
	assert.Equal(t, 1, tb.fatal)

	inBubble(t, 3, func(t *testing.T, f *redlocktest.Fleet) {
		const msg = "redlocktest: no node 3: the fleet has nodes 0 to 2"
		assert.PanicsWithValue(t, msg, func() { f.Stop(3) })
		assert.PanicsWithValue(t, msg, func() { f.Partition(0, 3) })
		assert.PanicsWithValue(t, msg, func() { f.Keys(3) })
		assert.Panics(t, func() { f.ClockRate(0, -1) })

		_, err := f.Host("h").Dial(t.Context(), "tcp", "10.0.0.9:6379")
		require.ErrorContains(t, err, "10.0.0.9:6379")
	})
}

type fakeTB struct{ fatal int }

func (*fakeTB) Helper()                  {}
func (*fakeTB) Cleanup(func())           {}
func (tb *fakeTB) Fatalf(string, ...any) { tb.fatal++ }

func TestInfoSaysWhatARealMasterSays(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		inBubble(t, 2, func(t *testing.T, f *redlocktest.Fleet) {
			c := redis.NewClient(&redis.Options{
				Addr: f.Addrs()[0], Dialer: f.Host("h").Dial, Protocol: protocol,
			})
			defer c.Close()
			time.Sleep(1500 * time.Millisecond)

			all := info(t, c)
			assert.Equal(t, "7.0.15", all["redis_version"])
			assert.Contains(t, all["redis_build_id"], "miniredis")
			assert.Len(t, all["run_id"], 40)
			assert.Equal(t, f.RunID(0), all["run_id"])
			assert.NotEqual(t, f.RunID(0), f.RunID(1))
			assert.Equal(t, "3601", all["uptime_in_seconds"])
			assert.Equal(t, "master", all["role"])
			assert.Equal(t, "0", all["connected_slaves"])
			assert.Equal(t, "noeviction", all["maxmemory_policy"])
			assert.Equal(t, "1", all["connected_clients"])
			micros := time.Now().UnixMicro()
			assert.Equal(t, micros, parseInt(t, all["server_time_usec"]))

			assert.Equal(t, keys(all), keys(info(t, c, "everything")))
			some := info(t, c, "SERVER", "replication", "nosuch")
			assert.Contains(t, some, "run_id")
			assert.Contains(t, some, "role")
			assert.NotContains(t, some, "maxmemory_policy")
			assert.Empty(t, info(t, c, "nosuch"))

			role, err := c.Do(t.Context(), "ROLE").Slice()
			require.NoError(t, err)
			assert.Equal(t, []any{"master", int64(0), []any{}}, role)
		})
	}
}

func TestUptimeIsWhatTheOptionSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := redlocktest.Start(t, 1, redlocktest.WithUptime(0))
		assert.Equal(t, "0", info(t, f.Clients()[0])["uptime_in_seconds"])
		time.Sleep(10 * time.Second)
		assert.Equal(t, "10", info(t, f.Clients()[0])["uptime_in_seconds"])
	})
}

func info(t *testing.T, c redis.Cmdable, sections ...string) map[string]string {
	t.Helper()
	text, err := c.Info(t.Context(), sections...).Result()
	require.NoError(t, err)
	fields := map[string]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

func TestCloseWaitsForClientsThatProbeANodeThatIsDown(t *testing.T) {
	for name, fault := range map[string]func(*redlocktest.Fleet){
		"stopped": func(f *redlocktest.Fleet) { f.Stop(0) },
		"cut off": func(f *redlocktest.Fleet) { f.Partition(0) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
				c := f.Clients()[0].(*redis.Client)
				fault(f)
				for range c.Options().PoolSize { // from here on go-redis probes by itself
					require.Error(t, c.Ping(t.Context()).Err())
				}
				time.Sleep(10*time.Second + time.Millisecond)
			})
		})
	}
}
