package redlock

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// idle makes a Locker whose nodes are never asked.
func idle(t *testing.T) *Locker {
	t.Helper()
	var clients []redis.UniversalClient
	for _, addr := range []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"} {
		c := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	l, err := New(clients, WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	require.NoError(t, err)
	return l
}

func TestAReplicaThatIsPromotedUnderItsRunIDDoesNotCountForAWhile(t *testing.T) {
	n := idle(t).fleet.nodes[0]
	n.learn(0, nodeInfo{runID: "A", role: "master", uptime: time.Hour, replicationKnown: true})
	n.learn(0, nodeInfo{runID: "B", role: "slave", uptime: time.Hour, replicationKnown: true})
	require.ErrorIs(t, n.fault(), ErrReplica)
	require.False(t, n.isChecked(), "a replica is asked again and again")
	n.learn(0, nodeInfo{runID: "B", role: "master", uptime: time.Hour, replicationKnown: true, promoted: true})
	require.NoError(t, n.fault())
	require.True(t, n.isChecked())
	require.Positive(t, n.quarantine(), "it missed writes until a moment ago")
}

func TestANodeThatBeginsToRefuseINFODoesNotCountForAWhile(t *testing.T) {
	n := idle(t).fleet.nodes[0]
	n.learn(0, nodeInfo{runID: "A", role: "master", uptime: time.Hour, replicationKnown: true})
	require.Zero(t, n.quarantine())
	n.goBlind(0, errors.New("NOPERM"))
	require.Positive(t, n.quarantine())
}

func TestANodeThatAlwaysRefusedINFOIsUsed(t *testing.T) {
	n := idle(t).fleet.nodes[0]
	n.goBlind(0, errors.New("NOPERM"))
	require.Zero(t, n.quarantine())
	require.True(t, n.isChecked())
}

func TestNobodyWaitsForTheNodesOfALockerThatWasClosedUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := idle(t)
		l.fleet.close() // overtakes a call that has just begun
		begin := time.Now()
		require.NoError(t, l.fleet.ready(context.Background()))
		require.Zero(t, time.Since(begin))
	})
}

func TestAReleaseThatIsOwedTwiceIsAnsweredOnce(t *testing.T) {
	lane := idle(t).fleet.lanes[0]
	answers := 0
	o := &op{step: step{script: releaseScript}, done: func(answer) { answers++ }}
	lane.distrust(ErrNodeTimeout)
	lane.submit(o)
	lane.trust()
	lane.distrust(ErrNodeTimeout)
	require.Equal(t, 1, answers)
	require.Len(t, lane.owed, 1)
}

// A suspicion that came after the answer is believed would last for ever: the lane sleeps, and what is
// submitted to a suspect node wakes nobody.
func TestASuspicionDoesNotComeAfterTheAnswer(t *testing.T) {
	lane := idle(t).fleet.lanes[0]
	for range 100 {
		lane.mu.Lock() // holds the suspicion up
		ctx, answered := lane.limit(time.Nanosecond)
		<-ctx.Done()
		time.Sleep(time.Millisecond) // until it has begun
		returned := make(chan struct{})
		go func() {
			answered()
			close(returned)
		}()
		early := false
		select {
		case <-returned:
			early = true // it had not begun, and does not begin any more
		case <-time.After(20 * time.Millisecond):
		}
		lane.mu.Unlock()
		<-returned
		if !early {
			require.ErrorIs(t, lane.suspicion(), ErrNodeTimeout)
			return
		}
		time.Sleep(10 * time.Millisecond)
		require.NoError(t, lane.suspicion(), "it came after the answer")
	}
	t.Error("no suspicion ever begins")
}

func TestElapsedTimeNeverRunsBackAndCountsSleepAndForwardSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := time.Duration(0)
		c := &systemClock{origin: time.Now(), asleep: func() time.Duration { return wall + time.Since(time.Unix(0, 0)) }}
		c.counted = c.asleep()
		require.Zero(t, c.Elapsed())
		time.Sleep(time.Second)
		require.Equal(t, time.Second, c.Elapsed())
		wall += time.Hour // slept, or was set
		require.Equal(t, time.Hour+time.Second, c.Elapsed())
		wall -= 30 * time.Minute
		require.Equal(t, time.Hour+time.Second, c.Elapsed())
		time.Sleep(time.Second)
		require.Equal(t, time.Hour+2*time.Second, c.Elapsed(), "and goes on at once")
	})
}

func TestTheContextHasEndedWhenTheLeaseHas(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	over := &LeaseError{Name: "job", Err: ErrLeaseExpired}
	lease := &Lease{locker: idle(t), over: over, cancel: cancel} // another goroutine is about to cancel
	lease.ctx = &leaseContext{Context: ctx, lease: lease}
	require.Error(t, lease.ctx.Err())
	require.ErrorIs(t, context.Cause(lease.ctx), ErrLeaseExpired)
}

func TestReleasesOfTwoOwnersThatInterleaveBothWake(t *testing.T) {
	ws := newWatches(make([]*lane, 3), "", "")
	ws.byName["k"] = newChannel("k") // with no listener to tell
	w := ws.open("k")
	for node := range 2 {
		ws.notify(node, "k", "x")
		ws.notify(node, "k", "y")
	}
	require.Len(t, w.C, 1, "both nodes have published y")
}
