package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestShowTellsWhatEachNodeKnows(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	lease := hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")
	require.NoError(t, lease.Save(t.Context(), []byte("three left")))

	got := at(t, fleet, "show", "sku:1")
	require.Zero(t, got.code, got.err)
	require.Equal(t, lease.Owner(), field(t, got.out, "holder", 1))
	require.Equal(t, lease.Token().String(), field(t, got.out, "token", 1))
	require.Contains(t, got.out, "10 bytes: three left")
	for _, addr := range fleet.Addrs() {
		require.Equal(t, lease.Owner(), field(t, got.out, addr, 1))
	}
}

func TestANameThatNobodyKnowsIsFree(t *testing.T) {
	t.Parallel()
	got := at(t, embedded(t, 3), "show", "never used")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "nobody has lately")
	require.Contains(t, got.out, "0/3")
}

func TestShowTellsWhatIsKnownWithoutAQuorum(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	lease := hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")
	fleet.Stop(0)
	fleet.Stop(1)
	hasty(t, fleet)

	// The one that is left may be late, on a busy machine.
	reached := func(got outcome) bool { return strings.Contains(got.out, lease.Owner()) }
	show := func(args ...string) outcome {
		got := at(t, fleet, append([]string{"show", "sku:1"}, args...)...)
		for began := time.Now(); !reached(got) && time.Since(began) < inTime; {
			got = at(t, fleet, append([]string{"show", "sku:1"}, args...)...)
		}
		return got
	}
	got := show()
	require.Equal(t, exitNoQuorum, got.code, got.err)
	require.Contains(t, got.out, "("+lease.Owner()+")", "one node's word is no holder")
	require.Equal(t, lease.Owner(), field(t, got.out, fleet.Addrs()[2], 1))
	require.Contains(t, got.err, "quorum")

	got = show("-o", "json")
	require.Equal(t, exitNoQuorum, got.code)
	var v details
	require.NoError(t, json.Unmarshal([]byte(got.out), &v))
	require.NotEmpty(t, v.Error)
	require.Empty(t, v.Holder)
	require.Equal(t, lease.Owner(), v.Claimant)

	fleet.Stop(2)
	got = at(t, fleet, "show", "sku:1")
	require.Equal(t, exitNoQuorum, got.code)
	require.Contains(t, got.out, "not known: too few nodes answer")
}

func TestShowTellsOfANodeInQuarantine(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	fleet.RestartEmpty(1)
	got := at(t, fleet, "show", "sku:1")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "does not count for")
	require.Contains(t, at(t, fleet, "show", "-o", "json", "sku:1").out, `"quarantine_ms"`)
}

func TestAStateIsPreviewedWhateverItIs(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0 bytes", preview([]byte{}))
	require.Equal(t, "2 bytes: ff00", preview([]byte{0xff, 0}))
	require.Equal(t, `3 bytes: \x1b[2`, preview([]byte("\x1b[2")))
	require.Equal(t, "201 bytes: "+strings.Repeat("x", 200)+"…", preview([]byte(strings.Repeat("x", 201))))
	require.Equal(t, "201 bytes: "+strings.Repeat("x", 199)+"…", preview([]byte(strings.Repeat("x", 199)+"é")))
}

func TestANameThatIsNotUTF8IsInJSONAsItsBytes(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	name := "odd\xff"
	hold(t, fleet, serviceOf(t, fleet, "pod-1"), name)
	got := at(t, fleet, "show", "-o", "json", name)
	require.Zero(t, got.code, got.err)
	var v details
	require.NoError(t, json.Unmarshal([]byte(got.out), &v))
	require.Equal(t, name, string(v.NameBytes))
}
