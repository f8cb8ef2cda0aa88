package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// What went wrong elsewhere, where no other test is named for it. See also safety_test.go.

// Two Redis electors for Go: with the key deleted, or the leader cut off, both replicas say that they
// lead for four to five seconds on a lease of one.
func TestAtMostOneSaysThatItLeads(t *testing.T) {
	both := func(t *testing.T, f *redlocktest.Fleet, harm func()) (together time.Duration) {
		a, b := candidate(t, f, "a"), candidate(t, f, "b")
		start(t, a, untilTold).leads(t)
		start(t, b, untilTold)
		time.Sleep(time.Minute)
		harm()
		const step = time.Millisecond
		for harmed := time.Now(); time.Since(harmed) < 10*ttl; time.Sleep(step) {
			synctest.Wait()
			if a.IsLeader() && b.IsLeader() {
				together += step
			}
		}
		require.NotEqual(t, a.IsLeader(), b.IsLeader())
		return together
	}
	t.Run("cut off", func(t *testing.T) {
		inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
			assert.Zero(t, both(t, f, func() { f.Host("a").Partition() }))
		})
	})
	t.Run("keys deleted", func(t *testing.T) {
		inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
			// Whoever deletes the keys lets another in; the next extension tells the leader.
			assert.LessOrEqual(t, both(t, f, func() {
				for _, c := range f.Clients() {
					require.NoError(t, c.Del(t.Context(), redlock.DefaultKeyPrefix+name).Err())
				}
			}), ttl/3+atOnce)
		})
	})
}

// etcd: Campaign returned without a lease, and the service believed for twelve hours that it led.
func TestTheFunctionIsNeverCalledWithoutALease(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a", leader.WithMaxTerm(5*time.Second))
		calls := 0
		r := start(t, e, func(ctx context.Context, term leader.Term) error {
			calls++
			lease, ok := redlock.LeaseFrom(ctx)
			assert.True(t, ok)
			assert.Equal(t, term.Number, lease.Token())
			assert.Positive(t, lease.Remaining())
			return untilTold(ctx, term)
		})
		for i := range 100 {
			time.Sleep(ttl / 3)
			switch i % 5 {
			case 0:
				f.Hang(0)
				f.Hang(1)
			case 2:
				f.Resume(0)
				f.Resume(1)
			case 3:
				f.Delay(2, time.Duration(i)*10*time.Millisecond)
			}
		}
		r.stop()
		require.NoError(t, r.wait(t))
		assert.Greater(t, calls, 3)
	})
}

// kubernetes #139991, when it is the health check that ends the term, or its bound.
func TestTheLeaseOutlivesAFunctionThatIsSlowToReturnWhateverEndsTheTerm(t *testing.T) {
	const slow = 2 * ttl
	p := newPatient()
	for why, opt := range map[string]leader.Option{
		"health": leader.WithHealthCheck(p.check, time.Second),
		"bound":  leader.WithMaxTerm(20 * time.Second),
	} {
		t.Run(why, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
				r := start(t, candidate(t, f, "slow", opt), func(ctx context.Context, _ leader.Term) error {
					<-ctx.Done()
					time.Sleep(slow)
					return nil
				})
				r.leads(t)
				successor := start(t, candidate(t, f, "successor"), untilTold)
				time.Sleep(10 * time.Second)
				p.sick.Store(true)
				defer p.sick.Store(false)
				successor.leads(t)
				all, next := r.served.all(), successor.served.last()
				old := all[len(all)-1] // it may have won again
				assert.GreaterOrEqual(t, old.to.Sub(old.contextEnd), slow)
				assert.False(t, next.from.Before(old.to), "the successor started when the function had returned")
				assert.Less(t, next.from.Sub(old.to), atOnce)
			})
		})
	}
}

// n8n #27126, when it is only the elector that starts anew, in the same process and with its old Locker.
func TestAnElectorThatStartsAnewDoesNotTakeUpItsOldTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		first := start(t, newElector(t, locker), untilTold)
		old := first.leads(t)
		f.Partition()
		first.stop()
		require.NoError(t, first.wait(t), "its release did not arrive")
		f.Heal()
		e := newElector(t, locker)
		again := start(t, e, untilTold)
		assert.False(t, e.IsLeader())
		assert.Greater(t, again.leads(t).Number, old.Number)
	})
}
