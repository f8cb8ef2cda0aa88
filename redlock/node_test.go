package redlock_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestAMinorityOfDeadNodesCostsNothing(t *testing.T) {
	for _, fault := range []struct {
		name   string
		strike func(*redlocktest.Fleet, int)
	}{
		{"stopped", (*redlocktest.Fleet).Stop},
		{"hung", (*redlocktest.Fleet).Hang},
		{"cut off", func(f *redlocktest.Fleet, i int) { f.Partition(i) }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			bubble(t, 5, func(t *testing.T, w *world) {
				a := w.locker("a")
				lease := w.acquire(a, "warm-up") // connects, and loads the scripts
				require.NoError(t, lease.Extend(t.Context()))
				require.NoError(t, lease.Release(t.Context()))
				synctest.Wait()
				for i := range 5 {
					w.fleet.Delay(i, time.Millisecond)
				}
				fault.strike(w.fleet, 1)
				fault.strike(w.fleet, 3)
				for range 100 {
					begin := time.Now()
					lease := w.acquire(a, "sku:42")
					require.NoError(t, lease.Extend(t.Context()))
					require.NoError(t, lease.Release(t.Context()))
					require.Equal(t, 3*time.Millisecond, time.Since(begin))
					time.Sleep(100 * time.Millisecond)
				}
			})
		})
	}
}

func TestADeadNodeAtTheFirstUseDoesNotHoldItUpForLong(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		w.fleet.Hang(1)
		w.fleet.Partition(3)
		begin := time.Now()
		require.NoError(t, w.acquire(w.locker("a"), "sku:42").Release(t.Context()))
		require.LessOrEqual(t, time.Since(begin), redlock.DefaultNodeTimeout)
		w.fleet.Resume(1)
		w.fleet.Heal()
	})
}

func TestANodeThatComesBackIsUsedAgain(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		require.NoError(t, w.acquire(a, "warm-up").Release(t.Context()))
		w.fleet.Hang(0)
		require.NoError(t, w.acquire(a, "sku:42").Release(t.Context()))
		time.Sleep(10 * time.Second)
		w.fleet.Resume(0)
		time.Sleep(7 * time.Second)
		lease := w.acquire(a, "sku:42")
		synctest.Wait()
		require.Equal(t, 3, w.lockedOn("sku:42"))
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestAReleaseThatANodeMissedIsMadeUpFor(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		lease := w.acquire(a, "sku:42")
		synctest.Wait()
		w.fleet.Hang(0)
		require.NoError(t, lease.Release(t.Context()))
		time.Sleep(time.Second)
		w.fleet.Resume(0)
		time.Sleep(100 * time.Millisecond)
		require.Zero(t, w.lockedOn("sku:42"))
	})
}

func TestAFreshNodesVoteDoesNotCountBeforeTheMaximumTTL(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		begin := time.Now()
		_, err := a.TryAcquire(t.Context(), "sku:42")
		require.ErrorIs(t, err, redlock.ErrQuarantined)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		lease := w.acquire(a, "sku:42")
		waited := time.Since(begin)
		require.GreaterOrEqual(t, waited, redlock.DefaultMaxTTL)
		require.LessOrEqual(t, waited, redlock.DefaultMaxTTL+1500*time.Millisecond)
		require.NoError(t, lease.Release(t.Context()))
	}, redlocktest.WithUptime(0))
}

func TestAMajorityThatRestartedEmptyGrantsNothingUnderAHeldLease(t *testing.T) {
	for _, who := range []string{"an old client", "a client that starts afterwards"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, w *world) {
				a, b := w.locker("a"), w.locker("b")
				require.NoError(t, w.acquire(b, "warm-up").Release(t.Context()))
				lease := w.acquire(a, "sku:42")
				w.fleet.RestartEmpty(0)
				w.fleet.RestartEmpty(1)
				if who != "an old client" {
					b = w.locker("c")
				}
				next := w.acquire(b, "sku:42")
				require.ErrorIs(t, lease.Err(), redlock.ErrLeaseExpired)
				require.Greater(t, next.Token(), lease.Token())
				require.NoError(t, next.Release(t.Context()))
			})
		})
	}
}

func TestTrustPersistenceSwitchesTheRestartRuleOff(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		begin := time.Now()
		require.NoError(t, w.acquire(w.locker("a", redlock.WithTrustPersistence()), "sku:42").Release(t.Context()))
		require.Less(t, time.Since(begin), time.Second)
	}, redlocktest.WithUptime(0))
}

func TestALeaseSurvivesThatEveryNodeRestartsEmptyOneAfterTheOther(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		lease := w.acquire(a, "sku:42", redlock.WithAutoExtend(true))
		require.NoError(t, lease.Save(t.Context(), []byte("kept")))
		// A rival that keeps losing leaves its tokens on the nodes as fences.
		rival, cancel := context.WithCancel(t.Context())
		b := w.locker("b")
		done := make(chan struct{})
		go func() {
			defer close(done)
			for rival.Err() == nil {
				if lease, err := b.TryAcquire(rival, "sku:42"); err == nil {
					t.Errorf("rival holds %s", lease.Name())
				}
				time.Sleep(300 * time.Millisecond)
			}
		}()
		for i := range 5 {
			w.fleet.RestartEmpty(i)
			time.Sleep(redlock.DefaultMaxTTL + 3*time.Second)
			require.NoError(t, lease.Err(), "after node %d", i)
		}
		cancel()
		<-done
		require.Equal(t, 5, w.lockedOn("sku:42"))
		require.NoError(t, lease.Release(t.Context()))
		require.Equal(t, "kept", string(w.acquire(b, "sku:42").State()))
	})
}

func TestALeaseSurvivesThatEveryNodeHangsPastTheTTLOneAfterTheOther(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "sku:42", redlock.WithAutoExtend(true))
		for i := range 5 {
			w.fleet.Hang(i)
			time.Sleep(redlock.DefaultTTL + time.Second)
			w.fleet.Resume(i)
			time.Sleep(redlock.DefaultTTL)
			require.NoError(t, lease.Err(), "after node %d", i)
			require.Equal(t, 5, w.lockedOn("sku:42"))
		}
		require.NoError(t, lease.Release(t.Context()))
		synctest.Wait()
		require.Zero(t, w.lockedOn("sku:42"))
	})
}

func TestTheSameServerTwiceIsRefused(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		_, err := redlock.New([]redis.UniversalClient{w.fleet.Clients()[0], w.fleet.Clients()[0]})
		require.ErrorIs(t, err, redlock.ErrSameServer)
		require.ErrorContains(t, err, "10.0.0.1:6379")

		// Under two addresses only the run_id tells.
		real := w.fleet.Addrs()[0]
		host := w.fleet.Host("a")
		alias := redis.NewClient(&redis.Options{Addr: "10.9.9.9:6379", Dialer: dialTo(host, real)})
		defer func() { require.NoError(t, alias.Close()) }()
		l, err := redlock.New([]redis.UniversalClient{host.Clients()[0], host.Clients()[1], alias}, redlock.WithLogger(quiet()))
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		_, err = l.Acquire(t.Context(), "sku:42")
		require.ErrorIs(t, err, redlock.ErrSameServer)
		require.ErrorContains(t, err, "10.9.9.9:6379")
		_, err = l.Check(t.Context())
		require.ErrorIs(t, err, redlock.ErrSameServer)
	})
}

func TestCheckReportsEveryNode(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		w.clock("a").Skew(-time.Minute)
		a := w.locker("a")
		reports, err := a.Check(t.Context())
		require.NoError(t, err)
		require.Len(t, reports, 3)
		for i, r := range reports {
			require.True(t, r.Up)
			require.Equal(t, w.fleet.Addrs()[i], r.Node)
			require.Equal(t, w.fleet.RunID(i), r.RunID)
			require.Equal(t, "master", r.Role)
			require.Zero(t, r.Quarantine)
			require.InDelta(t, time.Minute, r.ClockOffset, float64(time.Second))
			require.Len(t, r.Warnings, 1)
			require.Contains(t, r.Warnings[0], "clock is off by")
		}
		w.fleet.Stop(0)
		w.fleet.Stop(1)
		reports, err = a.Check(t.Context())
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.False(t, reports[0].Up)
		require.Error(t, reports[0].Err)
		require.NoError(t, reports[2].Err)
	})
}

func TestAnEvenNumberOfNodesIsAWarning(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world) {
		var log bytes.Buffer
		w.locker("a", redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.Contains(t, log.String(), "even number of nodes")
	})
}
