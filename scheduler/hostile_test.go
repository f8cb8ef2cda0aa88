package scheduler_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

func noop(context.Context, scheduler.Run) error { return nil }

func TestJobsWithNamesOfAnyBytesRunApart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("a")
		names := []string{"a", "a:fence", "{a}", "a{b}c", "{{a}}", "a{", "job/a", "\x00", "a\nb", "*", "\xff", "ünï", "gate:a", strings.Repeat("x", scheduler.MaxNameLength)}
		for _, name := range names {
			require.NoError(t, r.sched.Add(name, "@every 1m", noop), "%q", name)
		}
		for _, name := range []string{"", "a}b", "{}", "{a}:fence", strings.Repeat("x", scheduler.MaxNameLength+1)} {
			err := r.sched.Add(name, "@every 1m", noop)
			require.ErrorIs(t, err, scheduler.ErrInvalidJob, "%q", name)
			require.Less(t, len(err.Error()), 1000)
		}
		run(r)
		w.at(150 * time.Second)
		require.Equal(t, 2*len(names), r.count(scheduler.Ran))
		require.Len(t, w.fleet.Keys(0), len(names)+1, "one register each, and the bell; and no lock is left")
	})
}

// The lease of a job is an ordinary one: who takes a lock of its name keeps the job from running.
func TestALockOfAJobsNameExcludesItsRuns(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("a")
		r.add("@every 1m", nil, scheduler.WithStartDeadline(10*time.Second))
		lease, err := r.locker.Acquire(t.Context(), "job/tick", redlock.WithAutoExtend(true))
		require.NoError(t, err)
		run(r)
		w.at(90 * time.Second)
		require.Equal(t, 1, r.count(scheduler.Unclaimed, scheduler.Held))
		require.Empty(t, w.ran())
		require.NoError(t, lease.Release(t.Context()))
		w.at(150 * time.Second)
		require.Len(t, w.ran(), 2, "nothing was broken by it, and the first tick was run late")
	})
}

// However the nodes' records are damaged: nothing runs wild, and Run returns.
func TestDamagedRecordsNeitherStopOtherJobsNorRunWild(t *testing.T) {
	for _, state := range []string{
		`{"v":2,"settled":{"spans":[[5,1],[9223372036854775807,-9223372036854775808]]},"since":-9223372036854775808}`,
		`{"v":2,"settled":{"floor":-9223372036854775808,"spans":[[0,0],[0,0],[0,0]]},"open":[{"tick":-1,"attempt":-5}],"queued":-7,"aged":-9223372036854775808}`,
		`{"v":2,"spec":"x","open":[{"kind":"?","tick":9223372036854775807,"attempt":9223372036854775807}],"queued":9223372036854775807}`,
		`{"v":2,"triggers":9223372036854775807,"backfills":-3,"filled":9223372036854775807}`,
		`[]`, `null`, ``, `{"v":"2"}`,
	} {
		bubble(t, func(t *testing.T, w *world) {
			a := w.replica("a")
			a.add("*/10 * * * * *", nil)
			require.NoError(t, a.sched.Add("other", "*/10 * * * * *", nothing))
			for _, name := range []string{"job/tick", "control"} {
				lease, err := a.locker.Acquire(t.Context(), name)
				require.NoError(t, err)
				require.NoError(t, lease.Save(t.Context(), []byte(state)))
				require.NoError(t, lease.Release(t.Context()))
			}
			before := w.fleet.Commands(0)
			run(a)
			w.at(60 * time.Second)
			assert.Less(t, w.fleet.Commands(0)-before, 2500, "%s", state)
			assert.GreaterOrEqual(t, a.count(scheduler.Ran), 5, "%s", state)
			_ = a.sched.Pause(t.Context(), "tick")
			_, _ = a.sched.Status(t.Context(), "tick")
			require.True(t, state == "" || json.Valid([]byte(state)))
		})
	}
}
