package leader_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestLeaderTellsEveryoneWhoLeadsAndWhichTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		observer := candidate(t, f, "observer") // never runs
		a, b := candidate(t, f, "host-a", leader.WithIdentity("a: “Größe” <1>")), candidate(t, f, "host-b")
		first := start(t, a, untilTold)
		term := first.leads(t)
		second := start(t, b, untilTold)
		time.Sleep(time.Minute)
		for _, e := range []*leader.Elector{observer, a, b} {
			told, err := e.Leader(t.Context())
			require.NoError(t, err)
			assertTerm(t, term, told)
		}
		assert.Equal(t, "a: “Größe” <1>", term.Leader)

		require.NoError(t, a.Resign(t.Context()))
		term = second.leads(t)
		told, err := observer.Leader(t.Context())
		require.NoError(t, err)
		assertTerm(t, term, told)
		assert.Equal(t, "host-b", term.Leader, "by default the Locker's identity")
	})
}

func TestLeaderTellsWhenThereIsNone(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		_, err := e.Leader(t.Context())
		require.ErrorIs(t, err, leader.ErrNoLeader, "nobody ever led")
		require.ErrorContains(t, err, `who leads "billing"`)

		r := start(t, e, untilTold)
		r.leads(t)
		f.Stop(0)
		_, err = e.Leader(t.Context())
		require.NoError(t, err, "a minority of nodes is down")
		r.stop()
		require.NoError(t, r.wait(t))
		_, err = e.Leader(t.Context())
		require.ErrorIs(t, err, leader.ErrNoLeader, "its record is still there")

		require.NoError(t, f.Clients()[1].Set(t.Context(), redlock.DefaultKeyPrefix+name, "half/1", time.Minute).Err())
		_, err = e.Leader(t.Context())
		require.ErrorIs(t, err, leader.ErrNoLeader, "one node is no quorum")
	})
}

func TestLeaderSaysSoWhenTooFewNodesAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		start(t, candidate(t, f, "a"), untilTold).leads(t)
		f.Stop(0)
		f.Hang(1)
		_, err := candidate(t, f, "b").Leader(t.Context())
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(t, err, leader.ErrNoLeader)
	})
}

// Who has just won has not published yet; the record is still the one of the leader before.
func TestLeaderInventsNoTermForAHolderThatHasNotPublished(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		r := start(t, e, untilTold)
		r.leads(t)
		r.stop()
		require.NoError(t, r.wait(t))

		lease, err := newLocker(t, f, "b", redlock.WithIdentity("rack/7/b")).Acquire(t.Context(), name)
		require.NoError(t, err)
		told, err := e.Leader(t.Context())
		require.NoError(t, err)
		assert.Equal(t, leader.Term{Name: name, Leader: "rack/7/b"}, told)

		require.NoError(t, lease.Save(t.Context(), []byte(`not a record`)))
		told, err = e.Leader(t.Context())
		require.NoError(t, err)
		assert.Equal(t, leader.Term{Name: name, Leader: "rack/7/b"}, told)
	})
}

func TestLeaderTellsOfAForeignClientThatHoldsTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		for _, c := range f.Clients() {
			require.NoError(t, c.Set(t.Context(), redlock.DefaultKeyPrefix+name, "redsync", 5*time.Second).Err())
		}
		told, err := e.Leader(t.Context())
		require.NoError(t, err)
		assert.Equal(t, leader.Term{Name: name, Leader: "redsync"}, told)
		r := start(t, e, untilTold)
		time.Sleep(4 * time.Second)
		assert.Empty(t, r.served.all())
		r.leads(t)
	})
}

func TestACandidateThatLosesDoesNotChangeWhatLeaderTells(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		term := start(t, e, untilTold).leads(t)
		ahead := newClock()
		ahead.wrong = time.Hour // its proposals raise the fences above the leader's number
		other := newLocker(t, f, "b", redlock.WithClock(ahead))
		for range 5 {
			_, err := other.TryAcquire(t.Context(), name)
			require.ErrorIs(t, err, redlock.ErrTaken)
			time.Sleep(time.Minute)
		}
		told, err := e.Leader(t.Context())
		require.NoError(t, err)
		assertTerm(t, term, told)
	})
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a", redlock.WithMaxTTL(20*time.Second))
		for _, c := range []struct {
			name string
			opts []leader.Option
			err  error
			says string
		}{
			{"", nil, redlock.ErrInvalidName, "it is empty"},
			{strings.Repeat("x", 513), nil, redlock.ErrInvalidName, "the limit is 512"},
			{"a}b", nil, redlock.ErrInvalidName, "'}'"},
			{name, []leader.Option{nil}, redlock.ErrInvalidOption, "a nil Option"},
			{name, []leader.Option{leader.WithTTL(0)}, redlock.ErrTTLTooShort, "0s is below 10ms"},
			{name, []leader.Option{leader.WithTTL(-time.Second)}, redlock.ErrTTLTooShort, "-1s is below 10ms"},
			{name, []leader.Option{leader.WithTTL(21 * time.Second)}, redlock.ErrTTLTooLong, "WithMaxTTL"},
			{name, []leader.Option{leader.WithMargin(-1)}, redlock.ErrInvalidOption, "margin"},
			{name, []leader.Option{leader.WithTTL(time.Second), leader.WithMargin(600 * time.Millisecond)}, redlock.ErrInvalidOption, "margin"},
			{name, []leader.Option{leader.WithMaxTerm(0)}, redlock.ErrInvalidOption, "leave WithMaxTerm out for 24h"},
			{name, []leader.Option{leader.WithMaxTerm(-1)}, redlock.ErrInvalidOption, "could never begin"},
			{name, []leader.Option{leader.WithStopGrace(0)}, redlock.ErrInvalidOption, "leave WithStopGrace out for 10s"},
			{name, []leader.Option{leader.WithHealthCheck(nil, 0)}, redlock.ErrInvalidOption, "the health check is nil"},
			{name, []leader.Option{leader.WithHealthCheck(healthy, -1)}, redlock.ErrInvalidOption, "too often"},
			{name, []leader.Option{leader.WithHealthCheck(healthy, time.Microsecond)}, redlock.ErrInvalidOption, "the least is 1ms"},
			{name, []leader.Option{leader.WithPriority(-1)}, redlock.ErrInvalidOption, "not between 0"},
			{name, []leader.Option{leader.WithPriority(101)}, redlock.ErrInvalidOption, "and 100"},
			{name, []leader.Option{leader.WithAddress(strings.Repeat("x", 256))}, redlock.ErrInvalidOption, "the limit is 255"},
			{name, []leader.Option{leader.WithAddress("\xff")}, redlock.ErrInvalidOption, "the address"},
			{name, []leader.Option{leader.WithLabels(map[string]string{"": "x"})}, redlock.ErrInvalidOption, "a label has no name"},
			{name, []leader.Option{leader.WithLabels(map[string]string{"a": "\xff"})}, redlock.ErrInvalidOption, "not UTF-8"},
			{name, []leader.Option{leader.WithLabels(map[string]string{"a": strings.Repeat("x", 1024)})}, redlock.ErrInvalidOption, "publish a reference"},
			{name, []leader.Option{leader.WithLabels(manyLabels(17))}, redlock.ErrInvalidOption, "17 labels, the limit is 16"},
			{name, []leader.Option{leader.WithIdentity(strings.Repeat("\x00", 512)), leader.WithAddress(strings.Repeat("\x00", 255))}, redlock.ErrInvalidOption, "as they are published"},
			{name, []leader.Option{leader.WithResignPause(-1)}, redlock.ErrInvalidOption, "0 sets none"},
			{name, []leader.Option{leader.WithIdentity("")}, redlock.ErrInvalidOption, "the identity is empty"},
			{name, []leader.Option{leader.WithIdentity(strings.Repeat("x", 513))}, redlock.ErrInvalidOption, "the limit is 512"},
			{name, []leader.Option{leader.WithIdentity("\xff")}, redlock.ErrInvalidOption, "not UTF-8"},
		} {
			e, err := leader.New(locker, c.name, c.opts...)
			require.ErrorIs(t, err, c.err)
			require.ErrorContains(t, err, "leader: ")
			require.ErrorContains(t, err, c.says)
			assert.Nil(t, e)
		}
		_, err := leader.New(nil, name)
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorContains(t, err, "make one with redlock.New")

		e := newElector(t, locker)
		err = e.Run(t.Context(), nil)
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorContains(t, err, "the leading function is nil")
		assert.Zero(t, f.Commands(0), "nothing was asked of the nodes")
	})
}

func healthy(context.Context) error { return nil }

func manyLabels(n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[fmt.Sprint(i)] = "x"
	}
	return labels
}

func TestNilProvidersAndLoggersMeanTheDefaults(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		logs, before := newLogs(), slog.Default()
		slog.SetDefault(logs.logger())
		defer slog.SetDefault(before)
		e, err := leader.New(newLocker(t, f, "a"), name,
			leader.WithTracerProvider(nil), leader.WithMeterProvider(nil), leader.WithLogger(nil))
		require.NoError(t, err)
		r := start(t, e, untilTold)
		r.leads(t)
		r.stop()
		require.NoError(t, r.wait(t))
		assert.Len(t, logs.having("term ended"), 1)
	})
}

func TestTheSameServerTwiceEndsRun(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		clients := f.Clients()
		clients[1], clients[2] = f.Clients()[0], f.Clients()[0]
		clients = append(clients[:1], hidden{clients[1]}, hidden{clients[2]})
		locker, err := redlock.New(clients, redlock.WithClock(newClock()), redlock.WithLogger(quiet))
		require.NoError(t, err)
		defer locker.Close()
		r := start(t, newElector(t, locker), untilTold)
		require.ErrorIs(t, r.wait(t), redlock.ErrSameServer)
	})
}
