package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestBadSettingsAreRefusedWithWhatToDo(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		clients := w.fleet.Clients()
		for _, c := range []struct {
			name  string
			nodes []redis.UniversalClient
			opts  []redlock.Option
			err   error
			says  string
		}{
			{"no nodes", nil, nil, redlock.ErrNoNodes, "a client for each node"},
			{"nil client", []redis.UniversalClient{clients[0], nil}, nil, redlock.ErrInvalidOption, "client of node 1 is nil"},
			{"a client twice", []redis.UniversalClient{clients[0], clients[0]}, nil, redlock.ErrSameServer, "give each server once"},
			{"an address twice", []redis.UniversalClient{clients[0], w.fleet.Clients()[0]}, nil, redlock.ErrSameServer, "10.0.0.1:6379"},
			{"TTL too short", clients, []redlock.Option{redlock.WithTTL(9 * time.Millisecond)}, redlock.ErrTTLTooShort, "below 10ms"},
			{"TTL too long", clients, []redlock.Option{redlock.WithTTL(11 * time.Second)}, redlock.ErrTTLTooLong, "raise WithMaxTTL in all clients"},
			{"maximum TTL too short", clients, []redlock.Option{redlock.WithMaxTTL(time.Millisecond)}, redlock.ErrInvalidOption, "maximum TTL"},
			{"fence TTL too short", clients, []redlock.Option{redlock.WithFenceTTL(time.Second)}, redlock.ErrInvalidOption, "a fence must outlive every lease"},
			{"node timeout too long", clients, []redlock.Option{redlock.WithNodeTimeout(5 * time.Second)}, redlock.ErrInvalidOption, "small compared to the TTL"},
			{"negative node timeout", clients, []redlock.Option{redlock.WithNodeTimeout(-1)}, redlock.ErrInvalidOption, "node timeout"},
			{"negative margin", clients, []redlock.Option{redlock.WithMargin(-1)}, redlock.ErrInvalidOption, "margin"},
			{"margin too long", clients, []redlock.Option{redlock.WithMargin(5 * time.Second)}, redlock.ErrInvalidOption, "half the TTL"},
			{"validity out of reach", clients, []redlock.Option{redlock.WithMinValidity(8 * time.Second)}, redlock.ErrInvalidOption, "can never be reached"},
			{"negative extensions", clients, []redlock.Option{redlock.WithMaxExtensions(-1)}, redlock.ErrInvalidOption, "0 allows none"},
			{"negative attempts", clients, []redlock.Option{redlock.WithMaxAttempts(-1)}, redlock.ErrInvalidOption, "0 sets no limit"},
			{"no identity", clients, []redlock.Option{redlock.WithIdentity("")}, redlock.ErrInvalidOption, "identity is empty"},
			{"nil option", clients, []redlock.Option{nil}, redlock.ErrInvalidOption, "nil Option"},
		} {
			l, err := redlock.New(c.nodes, append([]redlock.Option{redlock.WithLogger(quiet())}, c.opts...)...)
			require.Nil(t, l, c.name)
			require.ErrorIs(t, err, c.err, c.name)
			require.ErrorContains(t, err, c.says, c.name)
			require.True(t, strings.HasPrefix(err.Error(), "redlock: "), c.name)
		}
	})
}

func TestBadNamesAndLeaseSettingsAreRefusedBeforeAnyNodeIsAsked(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		for _, c := range []struct {
			name, resource string
			opt            redlock.LeaseOption
			err            error
			says           string
		}{
			{"empty", "", nil, redlock.ErrInvalidName, "it is empty"},
			{"too long", strings.Repeat("x", 513), nil, redlock.ErrInvalidName, "the limit is 512"},
			{"brace", "a}b", nil, redlock.ErrInvalidName, "hash slot"},
			{"reserved", "{a}:fence", nil, redlock.ErrInvalidName, "kept for keys of names"},
			{"TTL too long", "x", redlock.WithTTL(time.Minute), redlock.ErrTTLTooLong, "maximum of 10s"},
			{"TTL too short", "x", redlock.WithTTL(time.Millisecond), redlock.ErrTTLTooShort, "below 10ms"},
		} {
			var opts []redlock.LeaseOption
			if c.opt != nil {
				opts = append(opts, c.opt)
			}
			_, err := a.Acquire(t.Context(), c.resource, opts...)
			require.ErrorIs(t, err, c.err, c.name)
			require.ErrorContains(t, err, c.says, c.name)
			require.ErrorIs(t, a.Validate(c.resource, opts...), c.err, c.name)
		}
		require.NoError(t, a.Validate("x", redlock.WithTTL(time.Second)))
		_, err := a.Acquire(t.Context(), "x", nil)
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		_, err = a.Inspect(t.Context(), "")
		require.ErrorIs(t, err, redlock.ErrInvalidName)
		require.Zero(t, w.fleet.Commands(0))
		longest := strings.Repeat("x", 512)
		require.NoError(t, w.acquire(a, longest).Release(t.Context()))
	})
}

func TestWhyNobodyCouldAcquireIsToldApart(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		held := w.acquire(a, "sku:42")

		_, err := b.TryAcquire(t.Context(), "sku:42")
		require.ErrorIs(t, err, redlock.ErrTaken)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		var quorumErr *redlock.QuorumError
		require.ErrorAs(t, err, &quorumErr)
		require.Equal(t, "acquire", quorumErr.Op)
		require.Equal(t, held.Owner(), quorumErr.Holder)
		require.Equal(t, 2, quorumErr.Quorum)
		require.InDelta(t, redlock.DefaultTTL, quorumErr.Wait, float64(20*time.Millisecond))

		_, err = a.TryAcquire(t.Context(), "sku:42")
		require.ErrorIs(t, err, redlock.ErrTaken)
		require.ErrorContains(t, err, "another caller in this process")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = b.Acquire(ctx, "sku:42")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, redlock.ErrTaken, "what the last attempt found")
		require.ErrorContains(t, err, "gave up after")
		require.NoError(t, held.Release(t.Context()))

		stop := errors.New("shutting down")
		cause, cancelCause := context.WithCancelCause(t.Context())
		cancelCause(stop)
		_, err = b.Acquire(cause, "sku:42")
		require.ErrorIs(t, err, stop)

		w.fleet.Stop(0)
		w.fleet.Stop(1)
		time.Sleep(time.Second)
		_, err = b.TryAcquire(t.Context(), "sku:42")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, redlock.ErrTaken)
		require.ErrorContains(t, err, "check that the nodes are up")
		require.ErrorContains(t, err, "10.0.0.1:6379")
		require.ErrorAs(t, err, &quorumErr)
		require.Len(t, quorumErr.Nodes, 2)
		var nodeErr *redlock.NodeError
		require.ErrorAs(t, err, &nodeErr)
	})
}

func TestAnAcquisitionThatTookTooLongHasNoValidity(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		require.NoError(t, w.acquire(a, "warm-up").Release(t.Context()))
		for i := range 3 {
			w.fleet.Delay(i, 90*time.Millisecond)
		}
		_, err := a.TryAcquire(t.Context(), "sku:42", redlock.WithTTL(100*time.Millisecond))
		require.ErrorIs(t, err, redlock.ErrNoValidity)
		require.ErrorContains(t, err, "longer TTL")
		time.Sleep(time.Second)
		require.Zero(t, w.lockedOn("sku:42"))
	})
}

func TestADamagedFenceIsReportedAndHarmsNoOtherName(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		for _, c := range w.fleet.Clients() {
			require.NoError(t, c.Set(t.Context(), "{quorate:bad}:fence", "9007199254740991", 0).Err())
		}
		_, err := a.Acquire(t.Context(), "bad")
		require.ErrorIs(t, err, redlock.ErrTokensExhausted)
		require.ErrorContains(t, err, "delete it on all nodes")
		lease := w.acquire(a, "good")
		require.Less(t, int64(lease.Token()), time.Now().Add(2*time.Hour).UnixMicro())
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestAKeyOfAnotherKindIsReportedByName(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		for _, c := range w.fleet.Clients() {
			require.NoError(t, c.HSet(t.Context(), "quorate:sku:42", "f", "v").Err())
		}
		_, err := w.locker("a").TryAcquire(t.Context(), "sku:42")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, "WRONGTYPE")
	})
}

func TestReleaseWithoutAQuorumSaysSoAndIsMadeUpFor(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "sku:42")
		synctest.Wait()
		w.fleet.Hang(0)
		w.fleet.Hang(1)
		err := lease.Release(t.Context())
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorIs(t, err, redlock.ErrNodeTimeout)
		w.fleet.Resume(0)
		w.fleet.Resume(1)
		time.Sleep(100 * time.Millisecond)
		require.Zero(t, w.lockedOn("sku:42"))
	})
}

func TestUseAfterClose(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		lease := w.acquire(a, "sku:42")
		require.NoError(t, a.Close())
		require.NoError(t, a.Close(), "a second Close does nothing")
		<-a.Done()

		require.ErrorIs(t, context.Cause(lease.Context()), redlock.ErrClosed)
		require.ErrorIs(t, lease.Release(t.Context()), redlock.ErrClosed)
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrClosed)
		require.ErrorIs(t, lease.Save(t.Context(), nil), redlock.ErrClosed)
		_, err := a.Acquire(t.Context(), "other")
		require.ErrorIs(t, err, redlock.ErrClosed)
		_, err = a.TryAcquire(t.Context(), "other")
		require.ErrorIs(t, err, redlock.ErrClosed)
		require.ErrorIs(t, a.Do(t.Context(), "other", func(context.Context, *redlock.Lease) error { return nil }), redlock.ErrClosed)
		_, err = a.Inspect(t.Context(), "other")
		require.ErrorIs(t, err, redlock.ErrClosed)
		_, err = a.Check(t.Context())
		require.ErrorIs(t, err, redlock.ErrClosed)
		require.Equal(t, 3, w.lockedOn("sku:42"), "its work may still be running")
	})
}

func TestANilFunctionIsAnErrorAndNoPanic(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		require.ErrorIs(t, w.locker("a").Do(t.Context(), "sku:42", nil), redlock.ErrInvalidOption)
		require.Zero(t, w.lockedOn("sku:42"))
	})
}
