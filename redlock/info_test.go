package redlock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/quorum"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestHowLongARestartedNodeDoesNotCount(t *testing.T) {
	const maxTTL = 10 * time.Second
	full := maxTTL + quorum.Drift(maxTTL)
	now := time.Hour
	n := &node{fleet: &fleet{maxTTL: maxTTL}}
	up := func(d time.Duration) nodeInfo { return nodeInfo{uptime: d, replicationKnown: true} }
	for _, c := range []struct {
		name     string
		replaces bool
		info     nodeInfo
		end      time.Duration
	}{
		{"up for long", false, up(time.Hour), 0},
		{"just started", false, up(0), now + full},
		{"uptime is cut off to seconds of a cached clock", false, up(time.Second), now + full},
		{"up for a part of it", false, up(5 * time.Second), now + full - 4*time.Second},
		{"just up for the maximum TTL", false, up(10 * time.Second), now + full - 9*time.Second},
		{"replaces a known process, long ago", true, up(time.Hour), 0},
		{"replaces a known process and does not say if it was promoted", true, nodeInfo{uptime: time.Hour}, now + full},
		{"was promoted, whatever its uptime", false, nodeInfo{uptime: time.Hour, replicationKnown: true, promoted: true}, now + full},
	} {
		require.Equal(t, c.end, n.quarantineEnd(now, c.replaces, c.info), c.name)
	}
	n.fleet.trustPersistence = true
	require.Zero(t, n.quarantineEnd(now, true, up(0)))
}

func TestWhatINFOTells(t *testing.T) {
	info, err := parseInfo(map[string]string{
		"redis_version": "7.2.4", "run_id": "abc", "uptime_in_seconds": "12", "role": "slave",
		"connected_slaves": "2", "maxmemory_policy": "allkeys-lru", "server_time_usec": "1700000000000000",
		"master_replid2": "0000000000000000000000000000000000000000",
	})
	require.NoError(t, err)
	require.Equal(t, 12*time.Second, info.uptime)
	require.False(t, info.promoted)
	require.Len(t, info.warnings(), 2)
	require.Equal(t, int64(1700000000), info.clock.Unix())

	info, err = parseInfo(map[string]string{"run_id": "abc", "uptime_in_seconds": "1", "master_replid2": "8f3c000000000000000000000000000000000000"})
	require.NoError(t, err)
	require.True(t, info.promoted)

	_, err = parseInfo(map[string]string{"uptime_in_seconds": "1"})
	require.ErrorIs(t, err, errNoRunID)
	_, err = parseInfo(map[string]string{"run_id": "abc"})
	require.ErrorIs(t, err, errNoRunID)
}

func TestAClientThatStandsStillAfterTheAnswerFindsNoClockOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := redlocktest.NewClock()
		for _, off := range []time.Duration{0, time.Minute, -time.Minute} {
			info := nodeInfo{clock: time.Now().Add(off), took: 4 * time.Millisecond, came: time.Now().Add(2 * time.Millisecond)}
			time.Sleep(10 * time.Second)
			require.Equal(t, off, info.offset(clock))
		}
	})
}
