package telemetry

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

var three = []string{"a", "b", "c"}

// scenarios are what may happen to a service, and the alerts that this has to raise: these and no others.
var scenarios = map[string]struct {
	happens func(w *world)
	raises  []string
}{
	"nothing": {happens: func(w *world) {
		w.start(plan{}, three...)
		w.pass(20 * time.Minute)
	}},
	"a leader that resigns, and replicas that are replaced one by one": {happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		require.NoError(w.t, w.leads().elector.Resign(w.t.Context()))
		w.pass(5 * time.Minute)
		for _, old := range three {
			w.replica(old).end()
			w.start(plan{}, old+"2")
			w.pass(2 * time.Minute)
		}
		w.pass(12 * time.Minute)
	}},
	"nodes that are restarted one by one, empty": {happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		for i := range 5 {
			w.nodes.RestartEmpty(i)
			w.pass(time.Minute)
		}
		w.pass(10 * time.Minute)
	}},
	"one node is down": {raises: []string{"QuorateNodeDown"}, happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		w.nodes.Stop(1)
		w.pass(5 * time.Minute)
	}},
	"one node more, and there is no quorum": {raises: []string{"QuorateNodeDown", "QuorateQuorumAtMargin"}, happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		w.nodes.Stop(1)
		w.nodes.Hang(3)
		w.pass(5 * time.Minute)
	}},
	"there is no quorum": {
		raises: []string{"QuorateLeaderMissing", "QuorateLeasesLost", "QuorateNoQuorum", "QuorateNodeDown", "QuorateTickUnclaimed"},
		happens: func(w *world) {
			w.start(plan{}, three...)
			w.warmUp()
			w.nodes.Partition(0, 1, 2)
			w.pass(10 * time.Minute)
		},
	},
	"a replica is cut off from one node": {raises: []string{"QuorateNodeCutOff"}, happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		w.nodes.Host("b").Partition(0)
		w.pass(5 * time.Minute)
	}},
	"a replica that does not lead is cut off from most nodes": {raises: []string{"QuorateNoQuorum", "QuorateNodeCutOff", "QuorateTickUnclaimed"}, happens: func(w *world) {
		w.start(plan{}, "a")
		w.leads()
		w.start(plan{}, "b", "c")
		w.warmUp()
		w.nodes.Host("c").Partition(0, 1, 2)
		w.pass(10 * time.Minute)
	}},
	"a node is slow": {raises: []string{"QuorateNodeSlow"}, happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		w.nodes.Delay(4, 300*time.Millisecond)
		w.pass(12 * time.Minute)
	}},
	"a node's clock is off": {raises: []string{"QuorateClockOff"}, happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		w.nodes.SkewClock(2, -time.Second)
		w.pass(8 * time.Minute)
	}},
	"all replicas are gone": {raises: []string{"QuorateLeaderMissing"}, happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		for _, r := range w.replicas {
			r.end()
		}
		w.pass(10 * time.Minute)
	}},
	"one replica has other nodes": {raises: []string{"QuorateTwoLeaders"}, happens: func(w *world) {
		// No sales: which of the two fleets has the higher token is a matter of luck.
		w.start(plan{sales: none}, "a", "b")
		w.start(plan{sales: none, nodes: redlocktest.Start(w.t, 3)}, "c")
		w.pass(12 * time.Minute)
	}},
	"the leading function ignores its context": {
		raises: []string{"QuorateLeaderStuck"},
		happens: func(w *world) {
			hang := make(chan struct{})
			w.start(plan{lead: func(context.Context, leader.Term) error {
				<-hang
				return nil
			}}, three...)
			w.warmUp()
			ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
			defer cancel()
			require.Error(w.t, w.leads().elector.Resign(ctx))
			w.pass(5 * time.Minute)
			close(hang)
		},
	},
	"the leading function fails": {raises: []string{"QuorateLeaderFlaps"}, happens: func(w *world) {
		w.start(plan{lead: func(context.Context, leader.Term) error {
			sleep(20 * time.Second)
			return errBroken
		}}, three...)
		w.pass(18 * time.Minute)
	}},
	"replicas have different specs": {raises: []string{"QuorateSpecsDiffer"}, happens: func(w *world) {
		w.start(plan{sales: none}, "a")
		w.start(plan{sales: none, spec: "*/2 * * * *"}, "b")
		w.pass(70 * time.Minute)
	}},
	"a deployment with another spec": {happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		for _, old := range three {
			w.replica(old).end()
			w.start(plan{spec: "*/2 * * * *"}, old+"2")
			w.pass(2 * time.Minute)
		}
		w.pass(12 * time.Minute)
	}},
	"a run fails, once": {raises: []string{"QuorateRunFailed"}, happens: func(w *world) {
		w.start(plan{run: func(_ context.Context, run scheduler.Run) error {
			if run.Scheduled.Minute() == 5 {
				return errBroken
			}
			return nil
		}}, three...)
		w.pass(7 * time.Minute)
	}},
	"a run takes longer than the next tick, once": {raises: []string{"QuorateTickLost"}, happens: func(w *world) {
		w.start(plan{run: func(_ context.Context, run scheduler.Run) error {
			if run.Scheduled.Minute() == 5 {
				sleep(70 * time.Second)
			}
			return nil
		}}, three...)
		w.pass(8 * time.Minute)
	}},
	"a job is paused": {happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		require.NoError(w.t, w.replicas[0].sched.Pause(w.t.Context(), "report"))
		w.pass(5 * time.Minute)
	}},
	"a write comes late, once": {raises: []string{"QuorateStaleWrites"}, happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		require.Error(w.t, w.replicas[0].gate.Admit(w.t.Context(), "sku:42", 1))
		w.pass(3 * time.Minute)
	}},
	"a lease ends under its holder, once": {raises: []string{"QuorateLeasesLost"}, happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		_, err := w.replicas[1].locker.TryAcquire(w.t.Context(), "forgotten")
		require.NoError(w.t, err)
		w.pass(3 * time.Minute)
	}},
	"leases are released just before they end": {raises: []string{"QuorateRenewalsLate"}, happens: func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
		for range 12 {
			lease, err := w.replicas[1].locker.TryAcquire(w.t.Context(), "slow")
			require.NoError(w.t, err)
			sleep(redlock.DefaultTTL - 300*time.Millisecond)
			require.NoError(w.t, lease.Release(w.t.Context()))
			w.pass(time.Minute)
		}
	}},
}

func TestEachScenarioRaisesItsAlertsAndNoOthers(t *testing.T) {
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := simulate(t, s.happens)
			got := map[string]bool{}
			for _, a := range raised(t, w.scraped) {
				t.Logf("%s %s after %v", a.name, a.labels, a.since.Sub(w.scraped.begin))
				got[a.name] = true
			}
			assert.ElementsMatch(t, s.raises, slices.Collect(maps.Keys(got)))
		})
	}
}

// A deployment counts a few mismatches; so does the next one, hours later.
func TestADeploymentThatEndsRaisesNoAlarmAboutSpecs(t *testing.T) {
	s := newSeries()
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for at := time.Duration(0); at < 6*time.Hour; at += scrapeEvery {
		mismatches := 1 + min(4, at.Truncate(6*time.Minute)/(6*time.Minute)) // until 24 minutes
		if at > 4*time.Hour {
			mismatches += 2
		}
		s.put(begin.Add(at), float64(mismatches), []string{
			labels.MetricName, "quorate_scheduler_mismatches_total", "job", job, "instance", "a", "quorate_job", "report",
		}, nil)
		s.begin, s.end = begin, begin.Add(at)
	}
	assert.Empty(t, raised(t, s))
}

func TestEveryAlertIsRaisedInSomeScenario(t *testing.T) {
	raises := map[string]bool{}
	for _, s := range scenarios {
		for _, name := range s.raises {
			raises[name] = true
		}
	}
	for _, r := range rules(t) {
		assert.True(t, raises[r.Alert], "no scenario for %s", r.Alert)
		delete(raises, r.Alert)
	}
	assert.Empty(t, raises, "scenarios for alerts that there are not")
}
