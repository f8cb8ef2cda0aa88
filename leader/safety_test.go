package leader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// phases are moments of a leader's life between two extensions.
func phases(t *testing.T, test func(t *testing.T, f *redlocktest.Fleet, phase time.Duration)) {
	t.Helper()
	for phase := time.Duration(0); phase <= ttl/3; phase += ttl / 21 {
		t.Run(fmt.Sprint("phase ", phase), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *redlocktest.Fleet) { test(t, f, time.Minute+phase) })
		})
	}
}

// A leader whose machine loses the network is a crashed one to all others.
func TestACrashedLeadersSuccessorStartsWithinTheTTLAnd100ms(t *testing.T) {
	phases(t, func(t *testing.T, f *redlocktest.Fleet, phase time.Duration) {
		start(t, candidate(t, f, "crashes"), untilTold).leads(t)
		successor := start(t, candidate(t, f, "successor"), untilTold)
		time.Sleep(phase)
		f.Host("crashes").Partition()
		crashed := time.Now()
		successor.leads(t)
		assert.LessOrEqual(t, time.Since(crashed), ttl+100*time.Millisecond)
		assert.GreaterOrEqual(t, time.Since(crashed), ttl*2/3, "no sooner than the TTL after an extension")
	})
}

func TestAPartitionedLeadersContextEndsBeforeTheSuccessorStarts(t *testing.T) {
	phases(t, func(t *testing.T, f *redlocktest.Fleet, phase time.Duration) {
		e := candidate(t, f, "cut off")
		cut := start(t, e, untilTold)
		cut.leads(t)
		successor := start(t, candidate(t, f, "successor"), untilTold)
		f.Delay(0, 30*time.Millisecond)
		f.Delay(1, 70*time.Millisecond)
		time.Sleep(phase)
		f.Host("cut off").Partition()
		successor.leads(t)
		old := cut.served.last()
		assert.False(t, e.IsLeader())
		require.False(t, old.contextEnd.IsZero())
		assert.True(t, old.contextEnd.Before(successor.served.last().from), "ended %v, successor started %v", old.contextEnd, successor.served.last().from)
		assert.ErrorIs(t, context.Cause(old.ctx), redlock.ErrLeaseExpired)
	})
}

func TestAHealedLeaderIsACandidateAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		r := start(t, e, untilTold)
		first := r.leads(t)
		f.Partition()
		time.Sleep(10 * time.Minute)
		assert.False(t, e.IsLeader())
		f.Heal()
		assert.Greater(t, r.leads(t).Number, first.Number)
	})
}

// kubernetes #139991: the lock was released while the leading function still ran.
func TestTheLeaseIsReleasedOnlyWhenTheFunctionHasReturned(t *testing.T) {
	ways := map[string]func(t *testing.T, e *leader.Elector, r *run){
		"resigned": func(t *testing.T, e *leader.Elector, _ *run) { go func() { _ = e.Resign(t.Context()) }() },
		"stopped":  func(_ *testing.T, _ *leader.Elector, r *run) { r.stop() },
	}
	for way, end := range ways {
		t.Run(way, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
				e := candidate(t, f, "slow")
				slow := start(t, e, func(ctx context.Context, _ leader.Term) error {
					<-ctx.Done()
					time.Sleep(4 * ttl) // the lease is extended meanwhile
					return nil
				})
				slow.leads(t)
				successor := start(t, candidate(t, f, "successor"), untilTold)
				time.Sleep(time.Minute)
				end(t, e, slow)
				time.Sleep(4*ttl - time.Millisecond)
				assert.Equal(t, 3, locked(f))
				assert.Empty(t, successor.served.all())

				successor.leads(t)
				gap := successor.served.last().from.Sub(slow.served.last().to)
				assert.GreaterOrEqual(t, gap, time.Duration(0))
				assert.Less(t, gap, atOnce)
			})
		})
	}
}

func TestAnElectorIsNoCandidateWhileItsFunctionIgnoresItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		hang := make(chan struct{})
		e := candidate(t, f, "stuck")
		stuck := start(t, e, func(context.Context, leader.Term) error {
			<-hang
			return nil
		})
		stuck.leads(t)
		f.Host("stuck").Partition()
		time.Sleep(2 * ttl)
		f.Host("stuck").Heal()
		time.Sleep(10 * time.Minute)
		assert.Zero(t, locked(f), "its lease has run out, and it does not ask for another")
		assert.False(t, e.IsLeader())
		require.ErrorIs(t, e.Resign(t.Context()), leader.ErrNotLeader)

		successor := start(t, candidate(t, f, "successor"), untilTold)
		successor.leads(t)
		close(hang)
		time.Sleep(time.Minute)
		assert.Len(t, stuck.served.all(), 1)
		successor.stop()
		stuck.leads(t)
	})
}

// trigger.dev #4918: a leader in its own eyes after its extension had failed.
func TestIsLeaderIsFalseOnceTheValidityIsOverThoughAllSocketsAreStuck(t *testing.T) {
	faults := map[string]func(f *redlocktest.Fleet){
		"partition": func(f *redlocktest.Fleet) { f.Partition() },
		"hang": func(f *redlocktest.Fleet) {
			for i := range f.Len() {
				f.Hang(i)
			}
		},
	}
	for fault, inject := range faults {
		t.Run(fault, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
				e := candidate(t, f, "a")
				hang := make(chan struct{})
				defer close(hang)
				r := start(t, e, func(context.Context, leader.Term) error {
					<-hang
					return nil
				})
				r.leads(t)
				time.Sleep(time.Minute)
				ctx := r.served.last().ctx
				lease, _ := redlock.LeaseFrom(ctx)
				inject(f)
				for cut := time.Now(); time.Since(cut) < 2*ttl; time.Sleep(time.Millisecond) {
					valid := lease.Remaining() > 0
					require.Equal(t, valid, e.IsLeader())
					require.Equal(t, valid, ctx.Err() == nil)
					require.False(t, valid && time.Since(cut) > ttl)
				}
			})
		})
	}
}

// No timer fires and no packet arrives while a machine sleeps.
func TestAfterTheMachineSleptNeitherIsLeaderNorTheContextSaysYes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		c := newClock()
		asleep := newElector(t, newLocker(t, f, "a", redlock.WithClock(c)))
		r := start(t, asleep, func(context.Context, leader.Term) error {
			time.Sleep(time.Minute)
			return nil
		})
		r.leads(t)
		ctx := r.served.last().ctx
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		require.True(t, asleep.IsLeader())
		require.NoError(t, ctx.Err())
		woke := time.Now()
		c.sleep(ttl)
		require.Error(t, ctx.Err())
		require.Error(t, child.Err(), "what is made from it has ended with it")
		require.False(t, asleep.IsLeader())
		require.Zero(t, time.Since(woke))
		assert.ErrorIs(t, context.Cause(ctx), redlock.ErrLeaseExpired)
	})
}

func TestIsLeaderAloneLooksAtTheClock(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		c := newClock()
		e := newElector(t, newLocker(t, f, "a", redlock.WithClock(c)))
		start(t, e, untilTold).leads(t)
		require.True(t, e.IsLeader())
		c.sleep(ttl)
		require.False(t, e.IsLeader())
	})
}

func TestIsLeaderIsFalseBeforeTheFunctionRunsAndAfterIt(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		for i := range f.Len() {
			f.Delay(i, 50*time.Millisecond)
		}
		calls := 0
		r := start(t, e, func(context.Context, leader.Term) error {
			calls++
			assert.True(t, e.IsLeader())
			return nil
		})
		for range 2000 {
			synctest.Wait() // the function blocks on nothing: it has returned, or it was not called yet
			assert.False(t, e.IsLeader())
			time.Sleep(time.Millisecond)
		}
		r.stop()
		require.NoError(t, r.wait(t))
		assert.Greater(t, calls, 3)
	})
}

// n8n #27126: after a restart a replica found its own old key and believed that it led.
func TestARestartedReplicaDoesNotTakeItsOldLeaseForItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		start(t, newElector(t, newLocker(t, f, "old process", redlock.WithIdentity("pod-0")), leader.WithIdentity("pod-0")), untilTold).leads(t)
		time.Sleep(time.Minute)
		f.Host("old process").Partition()
		crashed := time.Now()
		e := newElector(t, newLocker(t, f, "new process", redlock.WithIdentity("pod-0")), leader.WithIdentity("pod-0"))
		r := start(t, e, untilTold)
		for time.Since(crashed) < ttl*2/3 {
			require.False(t, e.IsLeader())
			time.Sleep(10 * time.Millisecond)
		}
		r.leads(t)
	})
}

// opensearch-k8s-operator #1545: one slow renewal ended the process.
func TestSlowExtensionsEndNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		r := start(t, candidate(t, f, "a"), untilTold)
		r.leads(t)
		for range 20 {
			time.Sleep(5 * time.Second)
			for i := range f.Len() {
				f.Hang(i)
			}
			time.Sleep(ttl / 3)
			for i := range f.Len() {
				f.Resume(i)
			}
		}
		assert.Len(t, r.served.all(), 1)
	})
}

// refuser is a hook of a client that fails to send what publishes a term.
type refuser struct{ on atomic.Bool }

var errRefused = errors.New("connection broke while sending")

func (h *refuser) publishes(cmds []redis.Cmder) bool {
	for _, cmd := range cmds {
		if strings.Contains(fmt.Sprint(cmd.Args()...), `"leader"`) {
			return h.on.Load()
		}
		for _, arg := range cmd.Args() {
			if b, ok := arg.([]byte); ok && strings.Contains(string(b), `"leader"`) {
				return h.on.Load()
			}
		}
	}
	return false
}

func (h *refuser) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *refuser) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.publishes([]redis.Cmder{cmd}) {
			cmd.SetErr(errRefused)
			return errRefused
		}
		return next(ctx, cmd)
	}
}

func (h *refuser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if h.publishes(cmds) {
			for _, cmd := range cmds {
				cmd.SetErr(errRefused)
			}
			return errRefused
		}
		return next(ctx, cmds)
	}
}

// river #1161: elected, but half working.
func TestATermThatCannotBePublishedIsNotLed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		hook := &refuser{}
		hook.on.Store(true)
		clients := f.Host("a").Clients()
		for _, c := range clients {
			c.AddHook(hook)
		}
		locker, err := redlock.New(clients, redlock.WithClock(newClock()), redlock.WithLogger(quiet))
		require.NoError(t, err)
		defer locker.Close()
		logs := newLogs()
		r := start(t, newElector(t, locker, leader.WithLogger(logs.logger())), untilTold)
		time.Sleep(time.Minute)
		assert.Empty(t, r.served.all())
		tries := len(logs.having("could not be published"))
		assert.Greater(t, tries, 2)
		assert.Less(t, tries, 60, "it stands back in between")

		works := start(t, candidate(t, f, "b"), untilTold)
		works.leads(t)
		works.stop()
		hook.on.Store(false)
		r.leads(t)
		r.stop()
		require.NoError(t, r.wait(t))
	})
}

func TestATermWhoseContextEndsWhileItIsPublishedIsNotLed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		lease, err := locker.Acquire(t.Context(), name) // the connections are there
		require.NoError(t, err)
		require.NoError(t, lease.Release(t.Context()))
		synctest.Wait()
		for i := range f.Len() {
			f.Delay(i, 100*time.Millisecond)
		}
		r := start(t, newElector(t, locker), untilTold)
		time.Sleep(150 * time.Millisecond)
		require.Equal(t, 3, locked(f))
		r.stop()
		require.NoError(t, r.wait(t))
		assert.Empty(t, r.served.all())
		assert.Zero(t, locked(f))
	})
}
