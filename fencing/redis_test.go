package fencing_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// writes are all ways to write through a gate, each to a key of its own.
func writes(t *testing.T, g *fencing.RedisGate) map[string]func(resource string, token redlock.Token) error {
	t.Helper()
	script, err := fencing.NewScript(`redis.call('SET', KEYS[1], 'x')`)
	require.NoError(t, err)
	ctx := t.Context()
	return map[string]func(resource string, token redlock.Token) error{
		"set": func(r string, token redlock.Token) error {
			return g.Set(ctx, r, token, "set", "x", 0)
		},
		"hset": func(r string, token redlock.Token) error {
			return g.HSet(ctx, r, token, "hset", map[string]any{"a": 1, "b": 2})
		},
		"incrby": func(r string, token redlock.Token) error {
			_, err := g.IncrBy(ctx, r, token, "incrby", 1, 0)
			return err
		},
		"run": func(r string, token redlock.Token) error {
			err := g.Run(ctx, r, token, script, []string{"run"}).Err()
			if err == redis.Nil { //nolint:errorlint // unwrapped is what is promised
				return nil
			}
			return err
		},
	}
}

func TestEveryWriteIsRefusedWithAnOlderToken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for key, write := range writes(t, w.gate) {
			require.NoError(t, write("sku:42", 100), key)
			require.NoError(t, write("sku:42", 100), "%s: the same token again", key)
			require.NoError(t, w.data.Del(t.Context(), key).Err())

			require.NoError(t, w.gate.Admit(t.Context(), "sku:42", 101))
			err := write("sku:42", 100)
			require.ErrorIs(t, err, fencing.ErrStaleToken, key)
			var stale *fencing.StaleError
			require.ErrorAs(t, err, &stale, key)
			assert.Equal(t, fencing.StaleError{Resource: "sku:42", Token: 100, Seen: 101}, *stale)
			require.ErrorContains(t, err, `fencing: "sku:42": stale token 100: the gate has admitted 101; another holds the resource now, stop the work`)
			assert.NotContains(t, w.store.Keys(0), key, "nothing was written")

			require.NoError(t, write("sku:43", 100), "%s: of another resource", key)
			require.NoError(t, w.data.FlushDB(t.Context()).Err())
		}
	})
}

func TestAWriteRaisesTheFence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for key, write := range writes(t, w.gate) {
			require.NoError(t, write(key, 100))
			require.ErrorIs(t, w.gate.Admit(t.Context(), key, 99), fencing.ErrStaleToken, key)
		}
	})
}

func TestTokensAreComparedAsNumbers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const top = redlock.Token(1<<53 - 1)
		for _, token := range []redlock.Token{9, 10, 99, 100, top - 1, top} {
			require.NoError(t, w.gate.Admit(t.Context(), "sku:42", token))
			require.ErrorIs(t, w.gate.Admit(t.Context(), "sku:42", token-1), fencing.ErrStaleToken, "%d", token)
		}
	})
}

func TestBadInputWritesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for key, write := range writes(t, w.gate) {
			for _, token := range []redlock.Token{0, -1, math.MinInt64, 1 << 53} {
				require.ErrorIs(t, write("sku:42", token), fencing.ErrInvalidToken, key)
			}
			for _, resource := range []string{"", strings.Repeat("x", redlock.MaxNameLength+1), "a}b"} {
				require.ErrorIs(t, write(resource, 1), redlock.ErrInvalidName, key)
			}
		}
		g, ctx := w.gate, t.Context()
		require.ErrorIs(t, g.Admit(ctx, "sku:42", 0), fencing.ErrInvalidToken)
		require.ErrorIs(t, g.Admit(ctx, "", 1), redlock.ErrInvalidName)
		require.ErrorIs(t, g.Set(ctx, "sku:42", 1, "", "x", 0), redlock.ErrInvalidOption)
		require.ErrorIs(t, g.Set(ctx, "sku:42", 1, "quorate:gate:{sku:42}", "x", 0), redlock.ErrInvalidOption)
		require.ErrorIs(t, g.Set(ctx, "sku:42", 1, "k", "x", -1), redlock.ErrInvalidOption)
		require.ErrorIs(t, g.Set(ctx, "sku:42", 1, "k", "x", time.Microsecond), redlock.ErrInvalidOption)
		require.ErrorIs(t, g.HSet(ctx, "sku:42", 1, "k", nil), redlock.ErrInvalidOption)
		_, err := g.IncrBy(ctx, "sku:42", 1, "k", 1<<53, 0)
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorIs(t, g.Run(ctx, "sku:42", 1, nil, nil).Err(), redlock.ErrInvalidOption)
		require.ErrorIs(t, g.Run(ctx, "sku:42", 1, &fencing.Script{}, nil).Err(), redlock.ErrInvalidOption)
		assert.Empty(t, w.store.Keys(0))

		for body, says := range map[string]string{"": "empty", " \n": "empty", "#!lua\nreturn 1": "shebang"} {
			_, err := fencing.NewScript(body)
			require.ErrorIs(t, err, redlock.ErrInvalidOption)
			require.ErrorContains(t, err, says)
		}
		ring := redis.NewRing(&redis.RingOptions{})
		defer ring.Close()
		for says, make := range map[string]func() (*fencing.RedisGate, error){
			"client is nil":   func() (*fencing.RedisGate, error) { return fencing.NewRedisGate(nil) },
			"a Ring":          func() (*fencing.RedisGate, error) { return fencing.NewRedisGate(ring) },
			"nil RedisOption": func() (*fencing.RedisGate, error) { return fencing.NewRedisGate(w.data, nil) },
			"fence TTL 1s": func() (*fencing.RedisGate, error) {
				return fencing.NewRedisGate(w.data, fencing.WithFenceTTL(time.Second))
			},
			"fence TTL -1s": func() (*fencing.RedisGate, error) {
				return fencing.NewRedisGate(w.data, fencing.WithFenceTTL(-time.Second))
			},
			"prefix is empty":  func() (*fencing.RedisGate, error) { return fencing.NewRedisGate(w.data, fencing.WithKeyPrefix("")) },
			`prefix "{a}" has`: func() (*fencing.RedisGate, error) { return fencing.NewRedisGate(w.data, fencing.WithKeyPrefix("{a}")) },
		} {
			_, err := make()
			require.ErrorIs(t, err, redlock.ErrInvalidOption)
			require.ErrorContains(t, err, says)
		}
	})
}

func TestSetStoresAValueWithItsTTL(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.NoError(t, w.gate.Set(t.Context(), "sku:42", 1, "k", []byte("a\x00b"), time.Hour))
		assert.Equal(t, "a\x00b", w.get("k"))
		assert.Equal(t, time.Hour, w.store.TTL(0, "k"))
		require.NoError(t, w.gate.Set(t.Context(), "sku:42", 1, "k", 1.5, 0))
		assert.Equal(t, "1.5", w.get("k"))
		assert.Zero(t, w.store.TTL(0, "k"))
		require.ErrorContains(t, w.gate.Set(t.Context(), "sku:42", 1, "k", struct{}{}, 0), "can't marshal")
	})
}

func TestHSetStoresFields(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fields := map[string]any{}
		for i := range 10_000 { // more than Lua unpacks
			fields[strings.Repeat("f", 3)+string(rune(i+1000))] = i
		}
		require.NoError(t, w.gate.HSet(t.Context(), "sku:42", 1, "k", fields))
		n, err := w.data.HLen(t.Context(), "k").Result()
		require.NoError(t, err)
		assert.EqualValues(t, 10_000, n)

		require.NoError(t, w.data.Set(t.Context(), "s", "a string", 0).Err())
		require.ErrorContains(t, w.gate.HSet(t.Context(), "sku:42", 1, "s", fields), "WRONGTYPE")
	})
}

func TestACounterDoesNotFallBelowItsFloor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		add := func(delta, floor int64) (int64, error) {
			return w.gate.IncrBy(t.Context(), "sku:42", 1, "stock", delta, floor)
		}
		for _, step := range []struct{ delta, floor, want int64 }{
			{3, 0, 3}, {-1, 0, 2}, {-2, 0, 0}, {-5, -5, -5}, {2, 0, -3}, {-7, math.MinInt64, -10}, {10, 0, 0},
		} {
			got, err := add(step.delta, step.floor)
			require.NoError(t, err, "%+v", step)
			require.Equal(t, step.want, got)
		}
		_, err := add(-1, 0)
		var below *fencing.BelowFloorError
		require.ErrorAs(t, err, &below)
		require.ErrorIs(t, err, fencing.ErrBelowFloor)
		assert.Equal(t, fencing.BelowFloorError{Key: "stock", Value: 0, Delta: -1, Floor: 0}, *below)
		require.ErrorContains(t, err, "it holds 0 and the floor is 0; nothing was written")
		assert.Equal(t, "0", w.get("stock"))

		for value, says := range map[string]string{
			"lots": "not an integer", "1.5": "not an integer", "9007199254740992": "2^53", "9007199254740991": "2^53",
		} {
			require.NoError(t, w.data.Set(t.Context(), "stock", value, 0).Err())
			_, err = add(1, 0)
			require.ErrorContains(t, err, says)
			assert.Equal(t, value, w.get("stock"))
		}
	})
}

func TestAScriptSeesItsOwnKeysAndArgumentsAndLines(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		run := func(body string, keys []string, args ...any) *redis.Cmd {
			script, err := fencing.NewScript(body)
			require.NoError(t, err)
			return w.gate.Run(t.Context(), "sku:42", 1, script, keys, args...)
		}
		got, err := run("-- a comment\nlocal n = #ARGV\nreturn {#KEYS, KEYS[1], KEYS[2], n, ARGV[1], ARGV[2]} -- the end",
			[]string{"a", "b"}, "x", 7).Slice()
		require.NoError(t, err)
		assert.Equal(t, []any{int64(2), "a", "b", int64(2), "x", "7"}, got)

		got, err = run("return {#KEYS, #ARGV}", nil).Slice()
		require.NoError(t, err)
		assert.Equal(t, []any{int64(0), int64(0)}, got)

		require.ErrorIs(t, run("return false", nil).Err(), redis.Nil)
		require.ErrorContains(t, run("\n\nerror('oh')", nil).Err(), ":3:")
		require.ErrorContains(t, run("return redis.error_reply('MINE and not yours')", nil).Err(), `fencing: run "sku:42": MINE and not yours`)

		keys, args := make([]string, 0, 4), make([]any, 0, 4)
		require.NoError(t, run("return 1", keys, args...).Err())
		assert.Equal(t, []string{""}, keys[:1], "the caller's slices are left alone")
		assert.Equal(t, []any{nil}, args[:1])
	})
}

func TestAServerThatLostTheScriptsIsGivenThemAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.NoError(t, w.gate.Set(t.Context(), "sku:42", 1, "k", "a", 0))
		w.store.Restart(0)
		require.NoError(t, w.gate.Set(t.Context(), "sku:42", 2, "k", "b", 0))
		require.ErrorIs(t, w.gate.Set(t.Context(), "sku:42", 1, "k", "c", 0), fencing.ErrStaleToken)
		assert.Equal(t, "b", w.get("k"))
	})
}

// go-redis repeats a command whose answer did not come in time, in its default options.
func TestACountThatMayHaveHappenedIsNotRepeated(t *testing.T) {
	script, err := fencing.NewScript(`return redis.call('INCR', KEYS[1])`)
	require.NoError(t, err)
	for name, count := range map[string]func(context.Context, *fencing.RedisGate) error{
		"IncrBy": func(ctx context.Context, g *fencing.RedisGate) error {
			_, err := g.IncrBy(ctx, "sku:42", 1, "stock", 1, 0)
			return err
		},
		"Run": func(ctx context.Context, g *fencing.RedisGate) error {
			return g.Run(ctx, "sku:42", 1, script, []string{"stock"}).Err()
		},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			require.NoError(t, count(t.Context(), w.gate), name)
			w.store.Delay(0, time.Minute) // the answer to what is sent now is lost
			time.AfterFunc(time.Second, func() { w.store.Delay(0, 0) })
			require.ErrorContains(t, count(t.Context(), w.gate), "i/o timeout", name)
			stock, _ := w.store.Get(0, "stock")
			assert.Equal(t, "2", stock, name)
		})
	}
}

func TestFencesLiveAsLongAsTheyAreToldTo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.NoError(t, w.gate.Admit(t.Context(), "sku:42", 5))
		assert.Zero(t, w.store.TTL(0, "quorate:gate:{sku:42}"))

		g := newGate(t, w.data, fencing.WithFenceTTL(time.Hour), fencing.WithKeyPrefix("shop:"))
		require.NoError(t, g.Admit(t.Context(), "sku:42", 5))
		time.Sleep(time.Minute)
		require.NoError(t, g.Admit(t.Context(), "sku:42", 5))
		assert.Equal(t, time.Hour, w.store.TTL(0, "shop:{sku:42}"), "counted from the last admission")
		time.Sleep(2 * time.Hour)
		require.NoError(t, g.Admit(t.Context(), "sku:42", 4), "nobody remembers")
		require.ErrorIs(t, w.gate.Admit(t.Context(), "sku:42", 4), fencing.ErrStaleToken)
	})
}

func TestADamagedFenceAdmitsNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const fence = "quorate:gate:{sku:42}"
		for _, damage := range []string{"", "x", "nan", "-1", "1e9", "7 8"} {
			require.NoError(t, w.data.Set(t.Context(), fence, damage, 0).Err())
			err := w.gate.Set(t.Context(), "sku:42", 5, "k", "x", 0)
			require.ErrorIs(t, err, fencing.ErrDamagedFence, damage)
			require.ErrorContains(t, err, fence)
		}
		require.NoError(t, w.data.Del(t.Context(), fence).Err())
		require.NoError(t, w.data.RPush(t.Context(), fence, 1).Err())
		require.ErrorContains(t, w.gate.Set(t.Context(), "sku:42", 5, "k", "x", 0), "WRONGTYPE")
		assert.NotContains(t, w.store.Keys(0), "k")
	})
}

func TestAnUnreachableStoreIsToldAsSuch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.store.Stop(0)
		err := w.guard("a", w.gate).Do(t.Context(), "sku:42", nothing)
		require.ErrorContains(t, err, "connection refused")
		require.ErrorContains(t, err, "not admitted")
	})
}

// cluster stands for a client that spreads keys over servers.
type cluster struct{ redis.UniversalClient }

func TestInAClusterTheDataMustBeWithTheFence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		g := newGate(t, cluster{w.data})
		for resource, keys := range map[string][]string{
			"sku:42":   {"sku:42", "stock:{sku:42}", "{sku:42}:sold"},
			"cart:{7}": {"cart:{7}", "items:{7}", "7"},
		} {
			for _, key := range keys {
				require.NoError(t, g.Set(t.Context(), resource, 1, key, "x", 0), key)
			}
			err := g.Set(t.Context(), resource, 1, "stock:sku:42", "x", 0)
			require.ErrorIs(t, err, fencing.ErrOtherSlot)
			require.ErrorContains(t, err, "name it with the hash tag")
			require.NoError(t, w.gate.Set(t.Context(), resource, 1, "stock:sku:42", "x", 0), "one server has all keys")
		}
	})
}

func TestResourcesWithAndWithoutBracesHaveFencesOfTheirOwn(t *testing.T) {
	fleet, err := redlocktest.New(1)
	require.NoError(t, err)
	defer fleet.Close()
	g := newGate(t, fleet.Clients()[0])
	resources := []string{"a", "{a}", "=a", "={a}", "{a}{b}", "b{a}"}
	for i, resource := range resources {
		require.NoError(t, g.Admit(context.Background(), resource, redlock.Token(100-i)), resource)
	}
	assert.Len(t, fleet.Keys(0), len(resources))
}
