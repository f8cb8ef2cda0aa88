package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// bare is the Locker of a fleet that other libraries lock as well.
var bare = redlock.WithKeyPrefix("")

func TestRedsyncAndWhatTakesItsPlaceExcludeEachOtherWhileTheFleetMovesOver(t *testing.T) {
	fleet, nodes := fleetOf(t, 3)
	ctx := within(t, 30*time.Second)
	other := lockerOn(t, fleet, bare)

	ran := 0
	require.NoError(t, redsyncBefore(ctx, nodes, func(ctx context.Context) error {
		ran++
		_, err := other.TryAcquire(ctx, "sku:42")
		require.ErrorIs(t, err, redlock.ErrTaken, "a replica that has moved does not get what redsync holds")
		return nil
	}))
	require.NoError(t, redsyncAfter(ctx, nodes, func(ctx context.Context, token redlock.Token) error {
		ran++
		require.Positive(t, token)
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		err := redsyncBefore(short, nodes, func(context.Context) error { ran += 100; return nil })
		require.Error(t, err, "redsync does not get what a replica that has moved holds")
		return nil
	}))
	require.Equal(t, 2, ran)
}

func TestRedislockAndWhatTakesItsPlaceExcludeEachOtherWhileTheFleetMovesOver(t *testing.T) {
	fleet, nodes := fleetOf(t, 1)
	ctx := within(t, 30*time.Second)
	other := lockerOn(t, fleet, bare)

	ran := 0
	require.NoError(t, redislockBefore(ctx, nodes[0], func(ctx context.Context) error {
		ran++
		_, err := other.TryAcquire(ctx, "import")
		require.ErrorIs(t, err, redlock.ErrTaken)
		return redislockAfter(ctx, nodes[0], func(context.Context) error { ran += 100; return nil })
	}))
	require.NoError(t, redislockAfter(ctx, nodes[0], func(ctx context.Context) error {
		ran++
		lease, ok := redlock.LeaseFrom(ctx)
		require.True(t, ok)
		require.Positive(t, lease.Token())
		return redislockBefore(ctx, nodes[0], func(context.Context) error { ran += 100; return nil })
	}))
	require.Equal(t, 2, ran, "who finds it taken does nothing, and says so by nil")
}
