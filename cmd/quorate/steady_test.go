package main

import (
	"flag"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// longestAnswer is how long tests give nodes for an answer, which on a busy machine may be late: the longest that goes
// with the default TTL.
const longestAnswer = redlock.DefaultTTL / 2

func init() {
	nodeTimeout = func(cmd *cli.Command) time.Duration {
		ttl := min(redlock.DefaultTTL, cmd.Duration("max-ttl"))
		if cmd.Duration("ttl") != 0 && cmd.Name != "lead" { // which has its own for its leases alone
			ttl = cmd.Duration("ttl")
		}
		for _, url := range cmd.StringSlice("nodes") {
			if _, is := inHaste.Load(url); is {
				return 0
			}
		}
		return min(longestAnswer, ttl/2)
	}
	testing.Init()
	_ = flag.Set("test.parallel", strconv.Itoa(2+2*runtime.GOMAXPROCS(0))) // they wait for processes and for the end of leases, most of the time
}

// inHaste are the URLs of nodes that commands give no more time than they do without tests.
var inHaste sync.Map

// hasty has commands give these nodes no more time than they do without tests: for what is waited for when some do
// not answer. Where the others have to answer, a busy machine may keep them from it: see quorately.
func hasty(t *testing.T, f *redlocktest.Fleet) {
	t.Helper()
	for _, url := range f.URLs() {
		inHaste.Store(url, true)
		t.Cleanup(func() { inHaste.Delete(url) })
	}
}

// quorately does something again until a quorum of nodes has answered in time.
func quorately(t *testing.T, do func() outcome) outcome {
	t.Helper()
	got := do()
	for began := time.Now(); got.code == exitNoQuorum && time.Since(began) < inTime; {
		got = do()
	}
	return got
}

// lenient is a setting of a test's own Lockers.
func lenient() redlock.Option { return redlock.WithNodeTimeout(longestAnswer) }

// A delay is how long this process was kept from what it wanted to do, at most.
type delay struct {
	mu      sync.Mutex
	longest time.Duration
}

// watchDelays notes delays until the test ends.
func watchDelays(t *testing.T) *delay {
	t.Helper()
	d := &delay{}
	stop := make(chan struct{})
	var watched sync.WaitGroup
	watched.Go(func() {
		const nap = 2 * time.Millisecond
		for {
			began := time.Now()
			select {
			case <-stop:
				return
			case <-time.After(nap):
			}
			d.mu.Lock()
			d.longest = max(d.longest, time.Since(began)-nap)
			d.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		close(stop)
		watched.Wait()
	})
	return d
}

// explains reports whether the machine has taken so long from the process.
func (d *delay) explains(loss time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.longest > loss
}

// requireLeft sees that locks had time left when a program was dead, unless the machine has kept this process from
// killing it, or from looking.
func (d *delay) requireLeft(t *testing.T, left []time.Duration) {
	t.Helper()
	for _, ttl := range left {
		if ttl <= 0 && d.explains(30*time.Millisecond) {
			t.Log("the machine stood still")
			return
		}
		require.Positive(t, ttl, "another could have the name before the program was dead")
	}
}
