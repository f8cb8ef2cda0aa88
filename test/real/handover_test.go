package real_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/test/redisserver"
)

// From Resign to the call of the successor's function, over five nodes.
func TestAHandOverTakesMilliseconds(t *testing.T) {
	t.Parallel()
	const back = 30 * time.Millisecond // for so long does who resigned stand back
	fleet := redisserver.StartFleet(t, 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type office struct {
		since time.Time
		term  leader.Term
		of    *leader.Elector
	}
	began := make(chan office, 10)
	var ended []chan error
	for range 3 {
		locker := newLocker(t, fleet.Clients(), atEase()...)
		awaitServing(t, locker)
		e, err := leader.New(locker, "office", leader.WithResignPause(back))
		require.NoError(t, err)
		end := make(chan error, 1)
		ended = append(ended, end)
		go func() {
			end <- e.Run(ctx, func(ctx context.Context, term leader.Term) error {
				began <- office{time.Now(), term, e}
				<-ctx.Done()
				return nil
			})
		}()
	}
	next := func() office {
		select {
		case o := <-began:
			return o
		case <-time.After(soon):
			t.Fatal("nobody leads")
			return office{}
		}
	}
	now := next()
	measured(t, func() string {
		var took []time.Duration
		for range 200 {
			pass(t, 2*back) // until all stand again
			start := time.Now()
			require.NoError(t, now.of.Resign(ctx))
			after := next()
			require.Greater(t, after.term.Number, now.term.Number)
			took = append(took, after.since.Sub(start))
			now = after
		}
		t.Logf("hand-over: median %v, p99 %v, longest %v", median(took), quantile(took, 0.99), quantile(took, 1))
		if median(took) > 100*time.Millisecond {
			return "the median is " + median(took).String()
		}
		return ""
	})
	cancel()
	for _, end := range ended {
		require.NoError(t, <-end)
	}
}
