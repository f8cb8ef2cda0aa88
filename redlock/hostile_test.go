package redlock_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// strangeNames are valid, and look like keys, channels and patterns of the library or of Redis.
var strangeNames = []string{
	"a", "a:fence", "a:fence:tagged", "{a}", "{a}b", "a{b}c", "a{b", "{{a}}", "{quorate:a}", "quorate:a", "{quorate:quorate:a}", "inbox/", "inbox/AAAA", "job/a", "gate:a", "gate:{a}",
	"\x00", "a\x00b", "a\nb", "a\r\n+OK\r\n", "*", "a*", "[a-z]", "?", " ", "a b", "\xff\xfe", "ünïcode", "\u202e", "a/b", "../a", "%s%n", "'; return 1 --", "1 1 state",
	strings.Repeat("x", redlock.MaxNameLength), strings.Repeat("x", redlock.MaxNameLength-1) + "y", strings.Repeat("{", redlock.MaxNameLength-1) + "a",
}

func TestNamesOfAnyBytesAreHeldAtOnceAndApart(t *testing.T) {
	for _, prefix := range []string{redlock.DefaultKeyPrefix, "", "{tag}", "a\n*"} {
		t.Run(strconv.Quote(prefix), func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, w *world) {
				a, b := w.locker("a", redlock.WithKeyPrefix(prefix)), w.locker("b", redlock.WithKeyPrefix(prefix))
				leases := map[string]*redlock.Lease{}
				for _, name := range strangeNames {
					if prefix == "{tag}" && strings.HasSuffix(name, ":fence") || prefix == "{tag}" && strings.HasSuffix(name, ":fence:tagged") || prefix == "{tag}" && (strings.HasSuffix(name, ":line") || strings.HasSuffix(name, ":line:tagged")) {
						require.ErrorIs(t, a.Validate(name), redlock.ErrInvalidName)
						continue
					}
					leases[name] = w.acquire(a, name)
					require.NoError(t, leases[name].Save(t.Context(), []byte("of "+name)))
				}
				require.Len(t, w.fleet.Keys(0), 2*len(leases), "a lock and a fence each")
				for name, lease := range leases {
					value, _ := w.fleet.Get(0, prefix+name)
					require.Equal(t, lease.Owner(), value, "%q", name)
					require.NoError(t, lease.Extend(t.Context()), "%q", name)
					status, err := b.Inspect(t.Context(), name)
					require.NoError(t, err, "%q", name)
					require.Equal(t, lease.Owner(), status.Holder, "%q", name)
					require.Equal(t, "of "+name, string(status.State), "%q", name)
					_, err = b.TryAcquire(t.Context(), name)
					require.ErrorIs(t, err, redlock.ErrTaken, "%q", name)
				}
				for name, lease := range leases {
					require.NoError(t, lease.Release(t.Context()), "%q", name)
					next, err := b.TryAcquire(t.Context(), name)
					require.NoError(t, err, "%q", name)
					require.Equal(t, "of "+name, string(next.State()), "%q", name)
				}
			})
		})
	}
}

func TestAReleaseWakesWaitersOfNamesOfAnyBytes(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		w.warm(a, b)
		for _, name := range strangeNames {
			lease := w.acquire(a, name, redlock.WithAutoExtend(true))
			took := make(chan time.Duration, 1)
			var released time.Time
			go func() {
				next, err := b.Acquire(t.Context(), name)
				if err != nil {
					t.Error(err)
				}
				took <- time.Since(released)
				_ = next.Release(t.Context())
			}()
			time.Sleep(20 * time.Second) // the backoff is at its longest
			released = time.Now()
			require.NoError(t, lease.Release(t.Context()))
			require.Less(t, <-took, time.Millisecond, "%q", name)
			synctest.Wait()
		}
	})
}

func TestANameThatIsTooLongIsRefusedByItsLength(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.locker("a")
		for _, name := range []string{strings.Repeat("x", 513), strings.Repeat("ü", 257), strings.Repeat("\x00", 1<<20)} {
			_, err := a.TryAcquire(t.Context(), name)
			require.ErrorIs(t, err, redlock.ErrInvalidName)
			require.ErrorContains(t, err, fmt.Sprintf("has %d bytes, the limit is 512", len(name)))
			require.Less(t, len(err.Error()), 500, "which does not repeat all of it")
			_, err = a.Inspect(t.Context(), name)
			require.ErrorIs(t, err, redlock.ErrInvalidName)
			require.Less(t, len(err.Error()), 500)
		}
	})
}

func TestAThousandNamesAreHeldAtOnce(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		leases := make([]*redlock.Lease, 1000)
		var wg sync.WaitGroup
		for i := range leases {
			wg.Go(func() {
				var err error
				if leases[i], err = a.Acquire(t.Context(), fmt.Sprint("sku:", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		tokens := map[redlock.Token]bool{}
		for _, lease := range leases {
			require.NoError(t, lease.Err())
			require.False(t, tokens[lease.Token()], "a process proposes no token twice")
			tokens[lease.Token()] = true
		}
		synctest.Wait()
		require.Len(t, w.fleet.Keys(0), 2*len(leases)+1) // and the fence of the warm-up
		for _, lease := range leases {
			wg.Go(func() {
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		require.Len(t, w.fleet.Keys(0), len(leases)+1, "the fences remain")
	})
}

func TestWhoKnowsAnOwnerCannotActForIt(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "sku:42")
		synctest.Wait() // until it is on all nodes
		_, err := w.locker("b").TryAcquire(t.Context(), "sku:42")
		var taken *redlock.QuorumError
		require.ErrorAs(t, err, &taken)
		require.Equal(t, lease.Owner(), taken.Holder, "it is no secret")

		for _, identity := range []string{lease.Owner(), "a", strings.TrimSuffix(lease.Owner(), lease.Owner()[len(lease.Owner())-1:])} {
			impostor := w.locker("c", redlock.WithIdentity(identity))
			_, err := impostor.TryAcquire(t.Context(), "sku:42")
			require.ErrorIs(t, err, redlock.ErrTaken)
			other := w.acquire(impostor, "other")
			require.NotEqual(t, lease.Owner(), other.Owner())
			require.NoError(t, other.Release(t.Context()))
		}
		synctest.Wait()
		require.Equal(t, 3, w.lockedBy(lease))
		require.NoError(t, lease.Extend(t.Context()))
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestAForeignOwnerOfAnyBytesIsToldOnOneShortLine(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a, client := w.locker("a"), w.fleet.Clients()[0]
		for _, foreign := range []string{"x\nlevel=ERROR msg=forged", "\x00\xff", "\x1b[2J", strings.Repeat("long", 100_000), ""} {
			require.NoError(t, client.Set(t.Context(), redlock.DefaultKeyPrefix+"sku:42", foreign, 0).Err())
			_, err := a.TryAcquire(t.Context(), "sku:42")
			require.ErrorIs(t, err, redlock.ErrTaken)
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "\x1b")
			require.NotContains(t, err.Error(), "\xff")
			require.Less(t, len(err.Error()), 3000)
			status, err := a.Inspect(t.Context(), "sku:42")
			require.NoError(t, err)
			require.Equal(t, foreign, status.Holder)
		}
	})
}

func TestTokensNearTheLimitAreGivenOutToTheLast(t *testing.T) {
	const largest = 1<<53 - 1
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		fence := func(text string) {
			for _, c := range w.fleet.Clients() {
				require.NoError(t, c.Set(t.Context(), "{quorate:sku:42}:fence", text, 0).Err())
			}
		}
		fence(fmt.Sprint(largest - 2))
		for _, want := range []redlock.Token{largest - 1, largest} {
			lease := w.acquire(a, "sku:42")
			require.Equal(t, want, lease.Token())
			require.NoError(t, lease.Extend(t.Context()))
			require.NoError(t, lease.Save(t.Context(), []byte("state")))
			require.NoError(t, lease.Release(t.Context()))
		}
		for _, beyond := range []int64{largest, largest + 1, math.MaxInt64} {
			fence(fmt.Sprint(beyond))
			begin := time.Now()
			_, err := a.Acquire(t.Context(), "sku:42")
			require.ErrorIs(t, err, redlock.ErrTokensExhausted, "after %d", beyond)
			require.ErrorContains(t, err, "delete it on all nodes")
			require.Less(t, time.Since(begin), time.Second, "no retry mends it")
			synctest.Wait()
			require.Zero(t, w.lockedOn("sku:42"))
		}
		other := w.acquire(a, "sku:43")
		require.Less(t, other.Token(), redlock.Token(time.Now().Add(time.Hour).UnixMicro()), "it is a matter of that name")
		require.NoError(t, other.Release(t.Context()))
	})
}

func TestTokensGrowFromAnyYearToAnyOther(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		var last redlock.Token
		for _, year := range []int{1970, 2026, 1970, 2200, 1970, 1900, 2026, 2250} {
			host := fmt.Sprint("host of ", year)
			w.clock(host).Skew(time.Until(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)))
			lease := w.acquire(w.locker(host), "sku:42")
			require.Greater(t, lease.Token(), last, "in %d", year)
			require.Equal(t, validity, lease.Remaining())
			last = lease.Token()
			require.NoError(t, lease.Extend(t.Context()))
			require.NoError(t, lease.Release(t.Context()))
		}
	})
}

func TestTTLsAtTheirLimits(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		_, err := a.TryAcquire(t.Context(), "sku:42", redlock.WithTTL(time.Millisecond))
		require.ErrorIs(t, err, redlock.ErrTTLTooShort)
		_, err = a.TryAcquire(t.Context(), "sku:42", redlock.WithTTL(0))
		require.ErrorIs(t, err, redlock.ErrTTLTooShort)
		_, err = a.TryAcquire(t.Context(), "sku:42", redlock.WithTTL(math.MaxInt64))
		require.ErrorIs(t, err, redlock.ErrTTLTooLong)

		begin := time.Now()
		lease := w.acquire(a, "sku:42", redlock.WithTTL(redlock.MinTTL))
		<-lease.Context().Done()
		require.Equal(t, redlock.MinTTL-redlock.MinTTL/100-2*time.Millisecond, time.Since(begin))
		time.Sleep(time.Second)

		year := 365 * 24 * time.Hour
		long := w.locker("b", redlock.WithMaxTTL(year), redlock.WithTTL(year), redlock.WithFenceTTL(math.MaxInt64), redlock.WithTrustPersistence())
		lease = w.acquire(long, "sku:42")
		synctest.Wait()
		require.Equal(t, year-year/100-2*time.Millisecond, lease.Remaining())
		require.Equal(t, year, w.fleet.TTL(0, redlock.DefaultKeyPrefix+"sku:42"))
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestStatesOfAnySizeAndBytesComeBackAsTheyWere(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		lease := w.acquire(a, "sku:42")
		require.Nil(t, lease.State(), "none was saved")
		var before []byte
		for _, state := range [][]byte{
			{}, nil, []byte(" "), []byte("1 1 state"), []byte("9007199254740991 1 "), {0}, []byte("\r\n$5\r\n"), []byte("\xff\xfe%d%s"),
			bytes.Repeat([]byte{0}, redlock.MaxStateSize), bytes.Repeat([]byte("9"), redlock.MaxStateSize),
		} {
			require.NoError(t, lease.Save(t.Context(), state))
			require.True(t, bytes.Equal(state, lease.State()))
			require.NoError(t, lease.Extend(t.Context()))
			require.NoError(t, lease.Release(t.Context()))
			lease = w.acquire(a, "sku:42")
			require.True(t, bytes.Equal(state, lease.State()), "%.20q", state)
			require.NotNil(t, lease.State(), "one was saved, if an empty one")
			before = state
		}
		require.ErrorIs(t, lease.Save(t.Context(), make([]byte, redlock.MaxStateSize+1)), redlock.ErrStateTooLarge)
		require.True(t, bytes.Equal(before, lease.State()))
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestAContextThatIsDoneEndsEachCallAtOnceAndLeavesNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		w.delay(5 * time.Millisecond)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		held := w.acquire(a, "held")
		begin := time.Now()
		ran := false
		_, err := a.Acquire(done, "sku:42")
		require.ErrorIs(t, err, context.Canceled)
		_, err = a.TryAcquire(done, "sku:42")
		require.ErrorIs(t, err, context.Canceled)
		err = a.Do(done, "sku:42", func(context.Context, *redlock.Lease) error { ran = true; return nil })
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, ran)
		_, err = a.Inspect(done, "sku:42")
		require.ErrorIs(t, err, context.Canceled)
		_, err = a.Check(done)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, held.Extend(done), context.Canceled)
		require.ErrorIs(t, held.Save(done, []byte("state")), context.Canceled)
		require.NoError(t, held.Err(), "the lease is not the call's")
		require.ErrorIs(t, held.Release(done), context.Canceled)
		require.Zero(t, time.Since(begin))
		time.Sleep(20 * time.Millisecond)
		require.Zero(t, w.lockedOn("sku:42"))
		require.Zero(t, w.lockedOn("held"), "the release goes on")
	})
}
