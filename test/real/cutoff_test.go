package real_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

func TestAHolderThatIsCutOffKnowsItBeforeAnyOtherClientAcquires(t *testing.T) {
	t.Parallel()
	const (
		holders = 8
		rounds  = 25 // of each holder
		ttl     = 400 * time.Millisecond
	)
	fleet := redisserver.StartFleet(t, 3)
	opts := []redlock.Option{redlock.WithTTL(ttl), redlock.WithTrustPersistence()}
	rival := newLocker(t, fleet.Clients(), opts...)

	var mu sync.Mutex
	var margins, takeovers []time.Duration
	var all sync.WaitGroup
	for h := range holders {
		links := fleet.Links()
		holder := newLocker(t, links.Clients(), opts...)
		all.Go(func() {
			last := redlock.Token(0)
			for range rounds {
				r, err := cutOffOnce(t.Context(), holder, rival, links, fmt.Sprintf("job-%d", h), ttl)
				if err != nil {
					t.Error(err)
					return
				}
				assert.Greater(t, r.first, last, "tokens grow from round to round")
				assert.Greater(t, r.second, r.first, "and from the holder to the rival")
				last = r.second
				mu.Lock()
				margins, takeovers = append(margins, r.margin), append(takeovers, r.takeover)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	require.Len(t, margins, holders*rounds)
	t.Logf("%d rounds: the context ended %v to %v (median %v) before the rival had the lease, which was %v after the cut (median)",
		len(margins), quantile(margins, 0), quantile(margins, 1), median(margins), median(takeovers))
}

// A cutOff is what one round showed.
type cutOff struct {
	first, second redlock.Token
	margin        time.Duration // from the end of the holder's context to the rival's lease
	takeover      time.Duration // from the cut to the rival's lease
}

// cutOffOnce cuts a holder that extends its lease off at some moment, and lets a rival wait for
// the name.
func cutOffOnce(ctx context.Context, holder, rival *redlock.Locker, links redisserver.Links, name string, ttl time.Duration) (r cutOff, err error) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	held, err := holder.Acquire(ctx, name, redlock.WithAutoExtend(true))
	if err != nil {
		return r, fmt.Errorf("the holder: %w", err)
	}
	ended := make(chan time.Time, 1)
	stop := context.AfterFunc(held.Context(), func() { ended <- time.Now() })
	defer stop()

	cut := make(chan time.Time, 1)
	cutter := time.AfterFunc(rand.N(ttl), func() {
		at := time.Now()
		links.Cut()
		cut <- at
	})
	defer cutter.Stop()
	next, err := rival.Acquire(ctx, name)
	// Once ended, a context stays so: had the two overlapped for however short a time, the
	// holder's would not have ended at this moment. Err goes by the clock, Done by a timer, so
	// the time that the timer ran may be later on a busy machine.
	overlap := held.Context().Err() == nil
	won := time.Now()
	if err != nil {
		return r, fmt.Errorf("the rival: %w", err)
	}
	if overlap {
		return r, fmt.Errorf("overlap: the rival has %q, and the holder's context is alive with %v left", name, held.Remaining())
	}
	if !errors.Is(held.Err(), redlock.ErrLeaseExpired) {
		return r, fmt.Errorf("the holder's lease ended otherwise: %w", held.Err())
	}
	r = cutOff{first: held.Token(), second: next.Token(), margin: won.Sub(<-ended), takeover: won.Sub(<-cut)}
	if r.margin < -soon/10 { // the timer's goroutine may have had to wait for the machine
		return r, fmt.Errorf("Done was closed %v after the rival had the lease", -r.margin)
	}
	if err := next.Release(ctx); err != nil && !errors.Is(err, redlock.ErrNoQuorum) {
		return r, fmt.Errorf("the rival's release: %w", err)
	}
	links.Heal()
	return r, nil
}
