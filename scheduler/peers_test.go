package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/scheduler"
)

// What a tick costs each node: who runs it acquires, claims, records the end and releases. Each other
// replica looks once.
const callsPerTick = 4 + 1 + 1

func (w *world) calls(replicas ...*replica) (n int) {
	for _, r := range replicas {
		n += int(r.calls.Load())
	}
	return n
}

func TestOneReplicaGoesForATickAndEachOtherLooksOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("*/6 * * * * *", nil)
		run(a, b, c)
		w.at(7 * time.Second)
		before := w.calls(a, b, c)
		w.at(127 * time.Second)
		w.eachOnce(6*time.Second, 126*time.Second, 6*time.Second)
		assert.Equal(t, 20*callsPerTick*w.fleet.Len(), w.calls(a, b, c)-before)
		for _, run := range w.ran() {
			assert.Equal(t, run.Scheduled, run.at.UTC(), "nobody waits for the others")
		}
		for _, r := range []*replica{a, b, c} {
			assert.GreaterOrEqual(t, w.by(r), 3, "they share the ticks")
		}
	})
}

func TestTheShareOfAReplicaThatIsCutOffIsRunAMomentLater(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("*/6 * * * * *", nil)
		run(a, b, c)
		w.at(7 * time.Second)
		a.host.Partition()
		w.at(300 * time.Second)
		w.eachOnce(6*time.Second, 294*time.Second, 6*time.Second)
		late := 0
		for _, run := range w.ran() {
			lag := run.at.Sub(run.Scheduled)
			assert.LessOrEqual(t, lag, 50*time.Millisecond)
			if lag > 0 {
				late++
				assert.Less(t, run.at.Sub(w.start), 200*time.Second, "a replica of which nothing is heard is forgotten")
			}
		}
		assert.Greater(t, late, 3)
		a.host.Heal()
	})
}

func TestAReplicaThatHasEndedIsNotWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("*/6 * * * * *", nil)
		run(a, b, c)
		w.at(7 * time.Second)
		a.shutDown()
		b.shutDown()
		w.at(61 * time.Second)
		w.eachOnce(6*time.Second, 60*time.Second, 6*time.Second)
		for _, run := range w.ran() {
			assert.Equal(t, run.Scheduled, run.at.UTC())
		}
	})
}

func TestReplicasWithOtherJobsAreNotWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.replica("a"), w.replica("b")
		a.add("*/6 * * * * *", nil)
		require.NoError(t, b.sched.Add("another", "*/6 * * * * *", noop))
		run(a, b)
		w.at(61 * time.Second)
		w.eachOnce(6*time.Second, 60*time.Second, 6*time.Second)
		for _, run := range w.ran() {
			assert.Equal(t, run.Scheduled, run.at.UTC())
		}
	})
}

// More jobs than are at the nodes at the same time.
func TestOfManyJobsThatAreDueAtOnceEachIsRunOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const jobs = 600
		var mu sync.Mutex
		runs := map[string]int{}
		var replicas []*replica
		for _, name := range []string{"a", "b", "c"} {
			r := w.replica(name)
			for i := range jobs {
				require.NoError(t, r.sched.AddAt(fmt.Sprint("job-", i), w.start.Add(time.Minute), func(_ context.Context, run scheduler.Run) error {
					mu.Lock()
					defer mu.Unlock()
					runs[run.Job]++
					return nil
				}))
			}
			replicas = append(replicas, r)
		}
		run(replicas...)
		w.at(59 * time.Second)
		before := w.calls(replicas...)
		w.at(62 * time.Second)
		require.Len(t, runs, jobs)
		for job, n := range runs {
			require.Equal(t, 1, n, job)
		}
		assert.InEpsilon(t, jobs*callsPerTick*w.fleet.Len(), w.calls(replicas...)-before, 0.02)
		for _, r := range replicas {
			assert.InDelta(t, jobs/3, r.count(scheduler.Ran), jobs/10)
		}
	})
}
