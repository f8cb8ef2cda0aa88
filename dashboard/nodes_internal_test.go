package dashboard

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/redlock"
)

func TestTheStateOfTheFleetIsThatOfItsNodes(t *testing.T) {
	up := redlock.NodeReport{Up: true}
	down := redlock.NodeReport{Err: redlock.ErrNodeTimeout}
	young := redlock.NodeReport{Up: true, Quarantine: time.Second}
	replica := redlock.NodeReport{Up: true, Err: redlock.ErrReplica}
	half := redlock.NodeReport{Role: "cluster", Shards: []redlock.NodeReport{up, down}, Err: redlock.ErrNodeTimeout}
	tooFew := fmt.Errorf("check: %w", redlock.ErrNoQuorum)
	for _, c := range []struct {
		reports []redlock.NodeReport
		err     error
		state   string
	}{
		{[]redlock.NodeReport{up, up, up}, nil, healthy},
		{[]redlock.NodeReport{up}, nil, healthy},
		{[]redlock.NodeReport{up, down, up}, nil, degraded},
		{[]redlock.NodeReport{up, young, up}, nil, degraded},
		{[]redlock.NodeReport{up, up, up}, errors.New("something else"), degraded},
		{[]redlock.NodeReport{up, down, down}, tooFew, noQuorum},
		{[]redlock.NodeReport{young, young, up}, nil, quarantined},
		{[]redlock.NodeReport{down, young, up}, nil, quarantined},
		{[]redlock.NodeReport{replica, up, up}, redlock.ErrReplica, unfit},
		{[]redlock.NodeReport{up, up, up}, redlock.ErrSameServer, unfit},
		{[]redlock.NodeReport{half, half, up}, nil, degraded}, // different shards: each name has its quorum
		{[]redlock.NodeReport{half, half, up}, tooFew, noQuorum},
		{nil, redlock.ErrClosed, closed},
	} {
		assert.Equal(t, c.state, sumUp(c.reports, c.err).State, "%+v %v", c.reports, c.err)
	}
}
