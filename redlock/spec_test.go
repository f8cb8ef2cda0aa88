package redlock_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// The spec tests hold the package to the text that describes Redlock, "Distributed locks with
// Redis": one test for each sentence that promises or demands something, with the section and the
// sentence. They stand in the order of the text, in spec_test.go (properties, single instance),
// spec_algorithm_test.go (the algorithm, clocks, retries, release), spec_arguments_test.go (safety,
// liveness) and spec_recovery_test.go (performance, crashes, extension). Where the package
// departs from the text, docs/divergence.md says so, and why.

// validity is what the defaults leave of the TTL when the nodes answer at once.
const validity = redlock.DefaultTTL - redlock.DefaultTTL/100 - 2*time.Millisecond

// warm has a Locker meet its nodes, and the nodes its scripts, so that what follows takes as long as it does
// day in, day out.
func (w *world) warm(lockers ...*redlock.Locker) {
	w.t.Helper()
	for _, l := range lockers {
		lease := w.acquire(l, "warm-up")
		require.NoError(w.t, lease.Extend(w.t.Context()))
		require.NoError(w.t, lease.Release(w.t.Context()))
	}
	synctest.Wait()
}

// delay makes each answer of every node take d.
func (w *world) delay(d time.Duration) {
	for i := range w.fleet.Len() {
		w.fleet.Delay(i, d)
	}
}

// foreign has a plain Redlock client lock a name on some nodes.
func (w *world) foreign(name string, ttl time.Duration, nodes ...int) {
	w.t.Helper()
	clients := w.fleet.Host("foreign").Clients()
	for _, i := range nodes {
		require.NoError(w.t, clients[i].SetNX(w.t.Context(), redlock.DefaultKeyPrefix+name, "foreign", ttl).Err())
	}
}

// ownersOf are the values of a name's lock on each node, "" where it is free.
func (w *world) ownersOf(name string) []string {
	owners := make([]string, w.fleet.Len())
	for i := range owners {
		owners[i], _ = w.fleet.Get(i, redlock.DefaultKeyPrefix+name)
	}
	return owners
}

// lockedBy counts the nodes on which a lease has the name.
func (w *world) lockedBy(lease *redlock.Lease) int {
	n := 0
	for _, owner := range w.ownersOf(lease.Name()) {
		if owner == lease.Owner() {
			n++
		}
	}
	return n
}

// acquires recognizes the arguments of the script that acquires: name, sha, 2, lock, fence, owner,
// token, ttl, fence ttl, last token, what is kept for it. No other has a number in the last but one of eleven.
func acquires(args []any) bool {
	if len(args) != 11 {
		return false
	}
	_, isNumber := args[9].(int64)
	return isNumber
}

// looks recognizes the arguments of the script that looks whether acquiring may succeed: name, sha, 2,
// lock, line, what is kept for it, how long to keep the line. No other has seven.
func looks(args []any) bool { return len(args) == 7 }

// asked records when a client was asked to run the script that acquires, or looks before it does.
type asked struct {
	mu sync.Mutex
	at []time.Time
}

func (a *asked) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (a *asked) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (a *asked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			if c.Name() == "evalsha" && (acquires(c.Args()) || looks(c.Args())) {
				a.mu.Lock()
				a.at = append(a.at, time.Now())
				a.mu.Unlock()
			}
		}
		return next(ctx, cmds)
	}
}

// gaps are the pauses between the attempts.
func (a *asked) gaps() []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var gaps []time.Duration
	for i := 1; i < len(a.at); i++ {
		gaps = append(gaps, a.at[i].Sub(a.at[i-1]))
	}
	return gaps
}

// watched makes a Locker whose attempts are recorded at the first node.
func (w *world) watched(host string) (*redlock.Locker, *asked) {
	w.t.Helper()
	clients := w.fleet.Host(host).Clients()
	seen := &asked{}
	clients[0].AddHook(seen)
	l, err := redlock.New(clients, redlock.WithClock(w.clock(host)), redlock.WithIdentity(host), redlock.WithLogger(quiet()))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = l.Close() })
	return l, seen
}

// Safety and liveness guarantees, 1: "Mutual exclusion. At any given moment, only one client can
// hold a lock."
func TestSpecAtAnyMomentOnlyOneClientHoldsALock(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		w.delay(time.Millisecond)
		var holders, turns atomic.Int32
		var wg sync.WaitGroup
		for _, host := range []string{"a", "b", "c", "d"} {
			l := w.locker(host)
			wg.Go(func() {
				for range 10 {
					lease, err := l.Acquire(t.Context(), "resource")
					if err != nil {
						t.Error(err)
						return
					}
					if n := holders.Add(1); n != 1 {
						t.Errorf("%d clients hold the lock", n)
					}
					time.Sleep(3 * time.Millisecond)
					turns.Add(1)
					holders.Add(-1)
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 40, turns.Load())
	})
}

// Safety and liveness guarantees, 2: "Deadlock free. Eventually it is always possible to acquire a
// lock, even if the client that locked a resource crashed or gets partitioned."
func TestSpecALockOfAClientThatCrashedOrIsCutOffCanBeAcquired(t *testing.T) {
	for _, fate := range []string{"crashed", "partitioned"} {
		t.Run(fate, func(t *testing.T) {
			bubble(t, 5, func(t *testing.T, w *world) {
				a, b := w.locker("a"), w.locker("b")
				w.acquire(a, "resource", redlock.WithAutoExtend(true))
				w.fleet.Host("a").Partition() // a process that crashes says no goodbye either
				if fate == "crashed" {
					require.NoError(t, a.Close())
				}
				require.NoError(t, w.acquire(b, "resource").Release(t.Context()))
				w.fleet.Host("a").Heal()
			})
		})
	}
}

// Safety and liveness guarantees, 3: "Fault tolerance. As long as the majority of Redis nodes are
// up, clients are able to acquire and release locks."
func TestSpecAsLongAsTheMajorityIsUpLocksAreAcquiredAndReleased(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a", redlock.WithTrustPersistence())
		w.warm(a)
		for first := range 5 {
			for second := range first {
				w.fleet.Stop(first)
				w.fleet.Stop(second)
				lease := w.acquire(a, "resource")
				require.NoError(t, lease.Release(t.Context()), "nodes %d and %d are down", first, second)
				w.fleet.Restart(first)
				w.fleet.Restart(second)
				time.Sleep(2 * time.Second) // until both are back in use
			}
		}
		for i := range 3 {
			w.fleet.Stop(i)
		}
		_, err := a.TryAcquire(t.Context(), "resource")
		require.ErrorIs(t, err, redlock.ErrNoQuorum, "the majority is down")
	})
}

// Correct implementation with a single instance: "SET resource_name my_random_value NX PX 30000".
// "The command will set the key only if it does not already exist (NX option), with an expire of
// 30000 milliseconds (PX option)."
func TestSpecTheKeyIsSetOnlyIfItDoesNotExistAndWithAnExpire(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.locker("a", redlock.WithMaxTTL(30*time.Second), redlock.WithTTL(30*time.Second))
		lease := w.acquire(a, "resource_name")
		value, _ := w.fleet.Get(0, redlock.DefaultKeyPrefix+"resource_name")
		require.Equal(t, lease.Owner(), value)
		require.Equal(t, 30*time.Second, w.fleet.TTL(0, redlock.DefaultKeyPrefix+"resource_name"))

		time.Sleep(time.Second)
		_, err := w.locker("b").TryAcquire(t.Context(), "resource_name")
		require.ErrorIs(t, err, redlock.ErrTaken)
		require.Equal(t, 1, w.lockedBy(lease))
		require.Equal(t, 29*time.Second, w.fleet.TTL(0, redlock.DefaultKeyPrefix+"resource_name"), "nor is its expire touched")
		require.NoError(t, lease.Release(t.Context()))
	})
}

// Correct implementation with a single instance: "This value must be unique across all clients and
// all lock requests."
func TestSpecTheValueIsUniqueAcrossClientsAndRequests(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		seen := map[string]bool{}
		for range 50 {
			// Clients that call themselves the same, as those of one process do.
			for _, host := range []string{"a", "b"} {
				l := w.locker(host, redlock.WithIdentity("same"))
				for _, name := range []string{"x", "y"} {
					lease := w.acquire(l, name)
					require.False(t, seen[lease.Owner()], "%s was there before", lease.Owner())
					seen[lease.Owner()] = true
					require.NoError(t, lease.Release(t.Context()))
				}
				require.NoError(t, l.Close())
			}
		}
	})
}

// Correct implementation with a single instance: "What should this random string be? I assume it's
// 20 bytes from /dev/urandom". Ours has at least 128 random bits behind the readable identity.
func TestSpecTheValueHasEnoughRandomBits(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.locker("a", redlock.WithIdentity("host:1"))
		places := [26]map[byte]bool{}
		for range 200 {
			lease := w.acquire(a, "resource")
			random, ok := strings.CutPrefix(lease.Owner(), "host:1/")
			require.True(t, ok)
			require.GreaterOrEqual(t, len(random)*5, 128, "bits in base 32: %s", random)
			for i := range places {
				if places[i] == nil {
					places[i] = map[byte]bool{}
				}
				places[i][random[i]] = true
			}
			require.NoError(t, lease.Release(t.Context()))
		}
		for i, letters := range places {
			require.Greater(t, len(letters), 25, "place %d is not random", i)
		}
	})
}

// Correct implementation with a single instance: "remove the key only if it exists and the value
// stored at the key is exactly the one I expect to be."
func TestSpecAReleaseRemovesTheKeyOnlyIfTheValueIsStillOurs(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		client := w.fleet.Clients()[0]
		a := w.locker("a")
		for _, other := range []string{"foreign", "a/", ""} {
			lease := w.acquire(a, "resource")
			require.NoError(t, client.Set(t.Context(), redlock.DefaultKeyPrefix+"resource", other, time.Hour).Err())
			_ = lease.Release(t.Context())
			value, found := w.fleet.Get(0, redlock.DefaultKeyPrefix+"resource")
			require.True(t, found, "the key with value %q was removed", other)
			require.Equal(t, other, value)
			require.NoError(t, client.Del(t.Context(), redlock.DefaultKeyPrefix+"resource").Err())
		}
		lease := w.acquire(a, "resource")
		require.NoError(t, lease.Release(t.Context()))
		require.Zero(t, w.lockedOn("resource"))
	})
}

// Correct implementation with a single instance: "a client may acquire the lock, get blocked in some
// operation for longer than the lock validity time […], and later remove the lock, that was
// already acquired by some other client."
func TestSpecAClientThatWasBlockedDoesNotRemoveTheLockOfAnother(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		blocked := w.acquire(w.locker("a"), "resource")
		next := w.acquire(w.locker("b"), "resource")
		require.ErrorIs(t, blocked.Release(t.Context()), redlock.ErrLeaseExpired)
		synctest.Wait()
		require.Equal(t, 1, w.lockedBy(next))
		require.NoError(t, next.Err())
		require.NoError(t, next.Release(t.Context()))
	})
}

// Correct implementation with a single instance: the validity time "is both the auto release time,
// and the time the client has in order to perform the operation required before another client may
// be able to acquire the lock again".
func TestSpecTheClientsTimeEndsBeforeTheKeyIsReleasedByItself(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "resource")
		require.Less(t, lease.Remaining(), w.fleet.TTL(0, redlock.DefaultKeyPrefix+"resource"))
		<-lease.Context().Done()
		require.Equal(t, 1, w.lockedBy(lease), "the key outlives the client's time")
		time.Sleep(redlock.DefaultTTL - validity)
		require.Zero(t, w.lockedOn("resource"), "and is released by itself")
	})
}

// docs/divergence.md backs each departure from the text with tests: those exist.
func TestTheTestsThatDivergenceMentionsExist(t *testing.T) {
	page, err := os.ReadFile("../docs/divergence.md")
	require.NoError(t, err)
	mentioned := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(string(page), -1)
	require.Greater(t, len(mentioned), 30, "divergence.md is not read")
	defined := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range declaration.FindAllStringSubmatch(string(text), -1) {
			defined[found[1]] = true
		}
		return err
	}))
	for _, name := range mentioned {
		require.True(t, defined[name], "docs/divergence.md mentions %s, which does not exist", name)
	}
}
