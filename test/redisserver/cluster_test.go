package redisserver

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestAClusterServesAllSlotsAndMovesThemAndGoesOnWithoutAMaster(t *testing.T) {
	c := StartCluster(t, 3)
	client := c.Client()
	masters := 0
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		require.NoError(t, client.Set(t.Context(), key, "1", 0).Err())
	}
	for _, m := range c.Masters {
		if len(m.Keys()) > 0 {
			masters++
		}
	}
	require.Equal(t, 3, masters)

	slot := c.Slot("a")
	from := c.Owner(slot)
	require.Contains(t, from.Keys(), "a")
	to := c.Masters[0]
	if to == from {
		to = c.Masters[1]
	}
	plain := from.Client()
	c.MoveSlot(slot, from, to,
		func() { require.NoError(t, plain.Get(t.Context(), "a").Err(), "the keys are still there") },
		func() { require.ErrorContains(t, plain.Get(t.Context(), "a").Err(), "ASK") })
	require.ErrorContains(t, plain.Get(t.Context(), "a").Err(), "MOVED")
	require.Contains(t, to.Keys(), "a")
	require.Equal(t, "1", client.Get(t.Context(), "a").Val())

	from.RestartEmpty()
	c.AwaitComplete()
	require.Empty(t, from.Keys())
	require.ErrorContains(t, plain.Get(t.Context(), "a").Err(), "MOVED", "it knows its cluster still")
	from.Kill()
	require.Eventually(t, func() bool {
		return client.Get(t.Context(), "a").Val() == "1"
	}, startTimeout, 10*time.Millisecond)
	require.NotErrorIs(t, client.Get(t.Context(), "a").Err(), redis.Nil)
}
