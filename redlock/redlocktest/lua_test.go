package redlocktest_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

// A connection that has named its database is served by miniredis' own interpreter, any other by
// the node's. twice runs a script on both, each on a node of its own, so that they may be compared.
type twice struct{ ours, theirs *redis.Conn }

func bothInterpreters(t *testing.T, f *redlocktest.Fleet) twice {
	clients := f.Clients()
	ours, theirs := clients[0].(*redis.Client).Conn(), clients[1].(*redis.Client).Conn()
	require.NoError(t, theirs.Select(t.Context(), 0).Err())
	return twice{ours, theirs}
}

func (b twice) run(t *testing.T, src string, keys []string, args ...any) (ours, theirs any) {
	t.Helper()
	call := func(c *redis.Conn) any {
		sha, err := c.ScriptLoad(t.Context(), src).Result()
		require.NoError(t, err)
		v, err := c.EvalSha(t.Context(), sha, keys, args...).Result()
		if err != nil {
			return "error: " + err.Error()
		}
		return v
	}
	return call(b.ours), call(b.theirs)
}

func (b twice) close(t *testing.T) {
	require.NoError(t, b.ours.Close())
	require.NoError(t, b.theirs.Close())
}

func TestScriptsAnswerAsInMiniredis(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *redlocktest.Fleet) {
		both := bothInterpreters(t, f)
		defer both.close(t)
		for _, src := range []string{
			`return nil`, `return true`, `return false`, `return 7`, `return 7.9`, `return -1`, `return 'x'`, `return ''`,
			`return {1, 'two', {3, false, 'x'}, true}`, `return {1, nil, 3}`, `return {}`,
			`return {ok = 'FINE'}`, `return {err = 'MINE failed'}`,
			`return redis.status_reply('FINE')`, `return redis.error_reply('MINE failed')`, `return redis.error_reply('failed')`,
			`return {KEYS[1], KEYS[2], KEYS[3] or 'none', ARGV[1], ARGV[2], #ARGV}`,
			`return redis.call('SET', KEYS[1], ARGV[1])`, `return redis.call('GET', KEYS[1])`, `return redis.call('GET', 'none')`,
			`return redis.call('SET', KEYS[1], 'y', 'NX', 'PX', 500)`,
			`return redis.call('SET', KEYS[1], 'y', 'PX', 500, 'GET')`,
			`return redis.call('PTTL', KEYS[1])`, `return redis.call('PTTL', 'none')`,
			`return redis.call('INCRBY', KEYS[2], 5)`, `redis.call('INCRBY', KEYS[2], 2.0) return redis.call('GET', KEYS[2])`,
			`return redis.call('RPUSH', 'list', 'a', 'b')`, `return redis.call('LRANGE', 'list', 0, -1)`,
			`return redis.pcall('GET', 'list')`, `return redis.pcall('GET', 'list').err`, `return type(redis.call('SET', 'a', 'b'))`,
			`return redis.call('PUBLISH', 'channel', 'x')`, `return redis.call('DEL', KEYS[1], KEYS[2])`,
			`return tonumber('12') + #ARGV[1]`, `return string.find('a b c', ' ', 1, true)`, `return math.floor(2.5)`,
			`local t = {} for i = 1, 3 do table.insert(t, i * i) end return t`,
			`return (pcall(function() error('x') end))`, `return tostring(select('#', 1, 2, 3))`,
			`return ...`,
		} {
			ours, theirs := both.run(t, src, []string{"k1", "k2"}, "v1", 2)
			assert.Equal(t, theirs, ours, "%s", src)
		}
		assert.Equal(t, f.Keys(1), f.Keys(0))
	})
}

func TestAScriptThatFailsSaysSoAndLeavesNothingBehind(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *redlocktest.Fleet) {
		both := bothInterpreters(t, f)
		defer both.close(t)
		for src, why := range map[string]string{
			`leak = 1`:                            "attempted to create global variable 'leak'",
			`return leak`:                         "attempted to access nonexistent global variable 'leak'",
			`error('mine')`:                       "mine",
			`return redis.call('GET')`:            "wrong number of arguments",
			`return redis.call('NOSUCH')`:         "nknown",
			`redis.call('SET', KEYS[1], {})`:      "must be strings or integers",
			`return redis.call()`:                 "at least one argument",
			`local x = nil; return x.y`:           "attempt to index",
			`return redis.call('SELECT', 'nope')`: "", // whatever they say, both refuse
		} {
			ours, theirs := both.run(t, src, []string{"k1"})
			for _, answer := range []any{ours, theirs} {
				require.IsType(t, "", answer, "%s", src)
				assert.Contains(t, answer, "error: ", "%s", src)
				assert.Contains(t, answer, why, "%s", src)
			}
			ours, _ = both.run(t, `return 1`, nil)
			assert.Equal(t, int64(1), ours, "after %s", src)
		}
	})
}

// TestTheProtocolsScriptsDoTheSameInBothInterpreters runs the scripts of redlock against two
// nodes in step, in random order with a few names, owners and tokens, and compares every answer
// and, at the end of each round, all keys with their values and TTLs.
func TestTheProtocolsScriptsDoTheSameInBothInterpreters(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "lua", "*.lua"))
	require.NoError(t, err)
	require.Len(t, files, 7)
	source := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		source[filepath.Base(file)] = string(text)
	}
	synctest.Test(t, func(t *testing.T) {
		f := redlocktest.Start(t, 2)
		both := bothInterpreters(t, f)
		defer both.close(t)
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 0))
		pick := func(of ...any) any { return of[rnd.IntN(len(of))] }
		for i := range 800 {
			keys := []string{"lock" + strconv.Itoa(rnd.IntN(2))}
			keys = append(keys, "{"+keys[0]+"}:fence")
			owner, token, ttl := pick("a", "b"), 1+rnd.IntN(4), pick(50, 200)
			script, args := "", []any(nil)
			switch rnd.IntN(7) {
			case 0:
				script, args = "acquire.lua", []any{owner, token, ttl, 1000, token + rnd.IntN(3), pick("next in line/p", "next in line/q")}
			case 1:
				script, args = "extend.lua", []any{owner, token, ttl, 1000}
			case 2:
				script, args = "release.lua", []any{owner, token, 1000, pick("0", "1"), pick("0", "1")}
				if rnd.IntN(2) == 0 {
					keys = append(keys, "{"+keys[0]+"}:line")
					args = append(args, "", pick("p", "q", "r"), pick("", "5", "7"), 1000, 20)
				}
			case 3:
				script, args = "save.lua", []any{owner, token, rnd.IntN(3), pick("", "s", "a b c"), 1000}
			case 4:
				script = "inspect.lua"
			case 5:
				script, keys = "wake.lua", keys[:1]
			case 6:
				script, args = "look.lua", []any{pick("next in line/p", "next in line/q"), pick("", 500)}
				keys[1] = "{" + keys[0] + "}:line"
			}
			ours, theirs := both.run(t, source[script], keys, args...)
			require.Equal(t, theirs, ours, "seed %d, call %d: %s %v %v", seed, i, script, keys, args)
			for _, key := range f.Keys(1) {
				a, _ := f.Get(0, key)
				b, _ := f.Get(1, key)
				require.Equal(t, b, a, "seed %d, call %d: %s after %s %v", seed, i, key, script, args)
				require.Equal(t, f.TTL(1, key), f.TTL(0, key), "seed %d, call %d: TTL of %s after %s %v", seed, i, key, script, args)
			}
			require.Equal(t, f.Keys(1), f.Keys(0))
			time.Sleep(time.Duration(rnd.IntN(30)) * time.Millisecond)
		}
	})
}

func TestAScriptBringsDataToThoseWhoWait(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := f.Clients()[0]
		sha, err := c.ScriptLoad(t.Context(), `return redis.call('RPUSH', KEYS[1], 'x')`).Result()
		require.NoError(t, err)
		got := make(chan []string)
		go func() { got <- c.BLPop(t.Context(), time.Minute, "list").Val() }()
		synctest.Wait()
		require.NoError(t, c.EvalSha(t.Context(), sha, []string{"list"}).Err())
		assert.Equal(t, []string{"list", "x"}, <-got)
	})
}

func TestAScriptInATransactionRunsAtItsEnd(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := f.Clients()[0]
		sha, err := c.ScriptLoad(t.Context(), `return redis.call('GET', KEYS[1])`).Result()
		require.NoError(t, err)
		var seen *redis.Cmd
		_, err = c.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Set(t.Context(), "k", "v", 0)
			seen = p.EvalSha(t.Context(), sha, []string{"k"})
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, "v", seen.Val())
	})
}
