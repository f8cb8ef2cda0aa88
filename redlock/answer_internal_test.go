package redlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/quorum"
)

func TestALockInItsLastMillisecondIsWaitedFor(t *testing.T) {
	a, err := parseReply(acquireScript, []any{int64(0), "holder", int64(0)})
	require.NoError(t, err)
	nodes := idle(t).fleet.nodes
	r := result{answers: []answer{a, a, a}}
	lost := r.failure("acquire", "name", nodes)
	require.Equal(t, time.Millisecond, lost.Wait, "and not for as long as the backoff has grown")
	require.Len(t, lost.Nodes, 3)
	require.Less(t, lost.Votes, quorum.Size(3))

	a, err = parseReply(acquireScript, []any{int64(0), "holder", int64(-1)})
	require.NoError(t, err)
	r = result{answers: []answer{a, a, a}}
	require.Zero(t, r.failure("acquire", "name", nodes).Wait, "a lock without a TTL never ends")
}
