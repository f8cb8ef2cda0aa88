package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

// names asks for held names.
func names(t *testing.T, h *dashboard.Handler, query string) (answer struct {
	Total    int              `json:"total"`
	Kept     int              `json:"kept"`
	Matching int              `json:"matching"`
	Err      string           `json:"err"`
	Rows     []map[string]any `json:"rows"`
},
) {
	t.Helper()
	w := get(t, h, "/names?"+query)
	require.Equal(t, 200, w.Code, w.Body)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	return answer
}

// campaign has a candidate run until stop is called or the test ends.
func campaign(t *testing.T, locker *redlock.Locker, election string) (e *leader.Elector, stop func()) {
	t.Helper()
	e, err := leader.New(locker, election, leader.WithLogger(quiet))
	require.NoError(t, err)
	return e, background(t, func(ctx context.Context) error {
		return e.Run(ctx, func(ctx context.Context, _ leader.Term) error {
			<-ctx.Done()
			return nil
		})
	})
}

func background(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

func TestANodeThatIsDownShowsAndTheFleetIsDegraded(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		p := look(t, newBoard(t, newLocker(t, f, "a")))
		settle()
		require.Equal(t, "ok", p.fleet()["state"])
		f.Stop(2)
		settle()
		require.Equal(t, "degraded", p.fleet()["state"])
		require.Equal(t, true, p.rows("nodes")[0]["up"])
		require.Equal(t, false, p.rows("nodes")[2]["up"])
		require.NotEmpty(t, p.rows("nodes")[2]["err"])
	})
}

func TestARestartedNodeShowsInQuarantine(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		p := look(t, newBoard(t, newLocker(t, f, "a")))
		settle()
		f.RestartEmpty(0)
		settle()
		require.Positive(t, p.rows("nodes")[0]["quarantine"])
		require.Equal(t, "degraded", p.fleet()["state"])
		f.RestartEmpty(1)
		settle()
		require.Equal(t, "quarantined", p.fleet()["state"], "two answer, and do not count")
		time.Sleep(redlock.DefaultMaxTTL)
		settle()
		require.Equal(t, "ok", p.fleet()["state"])
	})
}

func TestWithoutAQuorumWhatWasKnownStaysAndIsMarked(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		hold(t, locker, "sku:42")
		_, _ = campaign(t, newLocker(t, f, "b"), "billing")
		h := newBoard(t, locker)
		p := look(t, h)
		settle()
		seen := p.fleet()["names"].(map[string]any)["seen"]
		f.Stop(0)
		f.Stop(1)
		settle()
		settle()
		require.Equal(t, "noquorum", p.fleet()["state"])
		require.NotEmpty(t, p.fleet()["names"].(map[string]any)["err"])
		require.Less(t, p.fleet()["names"].(map[string]any)["seen"], float64(time.Now().Add(-3*interval).UnixMilli()))
		require.GreaterOrEqual(t, p.fleet()["names"].(map[string]any)["seen"], seen)
		require.Len(t, names(t, h, "q=sku").Rows, 1)
		require.Equal(t, true, p.row("elections", "billing")["leading"], "nothing else was heard")

		f.Restart(0)
		f.Restart(1)
		time.Sleep(2 * redlock.DefaultMaxTTL)
		settle()
		require.Equal(t, "ok", p.fleet()["state"])
		require.Nil(t, p.fleet()["names"].(map[string]any)["err"])
		require.Empty(t, names(t, h, "q=sku").Rows, "it ran out")
	})
}

func TestAChangeOfLeaderIsShownWithBothTerms(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		first, stop := campaign(t, newLocker(t, f, "b"), "billing")
		p := look(t, newBoard(t, newLocker(t, f, "a")))
		settle()
		_, _ = campaign(t, newLocker(t, f, "c"), "billing")
		require.True(t, first.IsLeader())
		stop()
		settle()
		row := p.row("elections", "billing")
		terms := row["terms"].([]any)
		require.Len(t, terms, 2)
		older, newer := terms[0].(map[string]any), terms[1].(map[string]any)
		require.Equal(t, "b", older["leader"])
		require.NotZero(t, older["until"])
		require.Equal(t, "c", newer["leader"])
		require.Zero(t, newer["until"])
		require.Less(t, older["number"], newer["number"])
		require.Equal(t, true, row["leading"])
	})
}

func TestAnElectionThatIsFollowedIsShownWhileNobodyLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		elector, err := leader.New(locker, "billing", leader.WithLogger(quiet))
		require.NoError(t, err)
		h := newBoard(t, locker, dashboard.WithElectors(elector))
		_, stop := campaign(t, newLocker(t, f, "b"), "billing")
		settle()
		stop()
		settle() // nobody has looked so far
		p := look(t, h)
		settle()
		row := p.row("elections", "billing")
		require.Equal(t, false, row["leading"])
		require.Len(t, row["terms"], 1)
		require.Nil(t, row["ours"])
	})
}

func TestJobsShowTheirRunsWhatWasNotRunAndWhenTheyComeDueNext(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		sched, err := scheduler.New(locker, scheduler.WithLogger(quiet), scheduler.WithIdentity("replica-1"))
		require.NoError(t, err)
		slow := func(context.Context, scheduler.Run) error {
			time.Sleep(25 * time.Second)
			return errors.New("out of paper")
		}
		require.NoError(t, sched.Add("report", "@every 10s", slow))
		background(t, sched.Run)
		p := look(t, newBoard(t, locker, dashboard.WithScheduler(sched)))
		time.Sleep(time.Minute)
		synctest.Wait()
		row := p.row("jobs", "report")
		require.Equal(t, true, row["local"])
		require.Len(t, row["next"], 3)
		told := fmt.Sprint(row["runs"])
		for _, word := range []string{"failed", "out of paper", "missed", "overlap", "running", "replica-1"} {
			require.Contains(t, told, word)
		}

		other := look(t, newBoard(t, newLocker(t, f, "b")))
		settle()
		row = other.row("jobs", "report")
		require.Nil(t, row["local"], "its schedule is known to its replicas alone")
		require.Contains(t, fmt.Sprint(row["runs"]), "out of paper")
	})
}

func TestAJobThatCannotBeReadSaysSoAndTheOthersShow(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		lease := hold(t, locker, "job/odd")
		require.NoError(t, lease.Save(t.Context(), []byte("what is this?")))
		require.NoError(t, lease.Release(t.Context()))
		sched, err := scheduler.New(locker, scheduler.WithLogger(quiet))
		require.NoError(t, err)
		require.NoError(t, sched.Add("even", "@every 1s", func(context.Context, scheduler.Run) error { return nil }))
		background(t, sched.Run)
		p := look(t, newBoard(t, locker))
		settle()
		require.Contains(t, p.row("jobs", "odd")["err"], "unreadable register")
		require.Nil(t, p.row("jobs", "even")["err"])
		require.NotEmpty(t, p.row("jobs", "even")["runs"])
	})
}

func TestHeldNamesAreFilteredSortedAndBoundedByTheServer(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		for i := range 250 {
			hold(t, locker, fmt.Sprintf("Cart:%03d", i))
		}
		time.Sleep(time.Second)
		hold(t, newLocker(t, f, "till"), "sku:42")
		h := newBoard(t, locker)
		look(t, h)
		settle()
		all := names(t, h, "sort=name")
		require.Equal(t, 251, all.Total)
		require.Equal(t, 251, all.Matching)
		require.Len(t, all.Rows, 200)
		require.Equal(t, "Cart:000", all.Rows[0]["name"])
		require.Equal(t, "sku:42", names(t, h, "sort=-name").Rows[0]["name"])
		require.Equal(t, "sku:42", names(t, h, "sort=age").Rows[0]["name"])
		require.NotEqual(t, "sku:42", names(t, h, "sort=-age").Rows[0]["name"])

		require.Equal(t, 10, names(t, h, "q=cart:01").Matching)
		byHolder := names(t, h, "q=TILL/")
		require.Len(t, byHolder.Rows, 1)
		require.Equal(t, "lock", byHolder.Rows[0]["kind"])
		require.InDelta(t, time.Now().Add(-5*time.Second).UnixMilli(), byHolder.Rows[0]["since"], 1000)
		require.Equal(t, 400, get(t, h, "/names?sort=weight").Code)
	})
}

func TestTheLockerThatIsClosedIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		p := look(t, newBoard(t, locker))
		settle()
		require.NoError(t, locker.Close())
		settle()
		require.Equal(t, "closed", p.fleet()["state"])
	})
}
