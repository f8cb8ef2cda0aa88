package gocronlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	gocronlock "github.com/quorate/quorate/scheduler/gocron"
)

var _ gocronlock.Leadership = (*leader.Elector)(nil)

func TestOnlyTheLeaderRunsTicksAndAnotherFollowsIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		second()
		var campaigns sync.WaitGroup
		var electors []*leader.Elector
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 3 {
			r := w.replica(fmt.Sprint("replica-", i), 0, func(r *replica) gocron.SchedulerOption {
				elector, err := leader.New(r.leases, "gocron", leader.WithLogger(quiet()))
				require.NoError(t, err)
				electors = append(electors, elector)
				campaigns.Go(func() {
					_ = elector.Run(ctx, func(term context.Context, _ leader.Term) error {
						<-term.Done()
						return nil
					})
				})
				adapter, err := gocronlock.NewElector(elector)
				require.NoError(t, err)
				return gocron.WithDistributedElector(adapter)
			})
			w.add(r, everySecond(), 10*time.Millisecond)
			r.sched.Start()
		}
		time.Sleep(10 * time.Second)
		first := w.begun()[0].replica
		for _, one := range w.begun() {
			require.Equal(t, first, one.replica)
		}
		require.InDelta(t, 10, w.count(), 1)

		for i, elector := range electors {
			if fmt.Sprint("replica-", i) == first {
				require.NoError(t, elector.Resign(t.Context()))
			}
		}
		resigned := w.count()
		time.Sleep(10 * time.Second)
		require.InDelta(t, resigned+10, w.count(), 1)
		for _, one := range w.begun()[resigned:] {
			require.NotEqual(t, first, one.replica)
		}
		cancel()
		campaigns.Wait()
	})
}

func TestWhoDoesNotLeadIsToldSo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		elector, err := leader.New(w.replica("replica", 0).leases, "gocron")
		require.NoError(t, err)
		adapter, err := gocronlock.NewElector(elector)
		require.NoError(t, err)
		require.ErrorIs(t, adapter.IsLeader(t.Context()), gocronlock.ErrNotLeader)
	})
}
