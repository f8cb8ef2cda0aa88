package leader_test

import (
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
			assert.Equal(t, term, told)
		}
		assert.Equal(t, "a: “Größe” <1>", term.Leader)

		require.NoError(t, a.Resign(t.Context()))
		term = second.leads(t)
		told, err := observer.Leader(t.Context())
		require.NoError(t, err)
		assert.Equal(t, term, told)
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
		assert.Equal(t, term, told)
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
			{name, []leader.Option{leader.WithMaxExtensions(-1)}, redlock.ErrInvalidOption, "0 allows none"},
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
