package redlock

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two names never share a key, whatever is in them and whatever the prefix is; the two keys of a
// name share a hash slot; and a name that cannot be used is told so.
func FuzzNoTwoNamesShareAKey(f *testing.F) {
	names := []string{
		"sku:42", "", "a", "{a}", "a:fence", "{a}:fence", "{a}:fence:tagged", "a:fence:tagged", "{quorate:a}:fence", "a{b}c", "a}b", "a{}b", "{}", "}{", "{", "}",
		"{{a}}", "a{b", "a{b}c}d", "\x00", "a\nb", "a\r\n", "\xff\xfe", "ünï", "inbox/AAAA", "quorate:a", "job/nightly", "gate:a", " ", "*", "a b",
		strings.Repeat("x", MaxNameLength), strings.Repeat("x", MaxNameLength+1), strings.Repeat("{", MaxNameLength),
	}
	for i, a := range names {
		for _, prefix := range []string{"", DefaultKeyPrefix, "{app}:", "app{", "{", "}", "{}", "a{b}c}"} {
			for next := 1; next <= 3; next++ {
				f.Add(prefix, a, names[(i+next)%len(names)])
			}
		}
	}
	f.Fuzz(func(t *testing.T, prefix, first, second string) {
		var used []keys
		for _, name := range []string{first, second} {
			k, err := keysOf(prefix, name)
			if err != nil {
				require.ErrorIs(t, err, ErrInvalidName)
				require.Less(t, len(err.Error()), 5000, "of a name of %d bytes", len(name))
				continue
			}
			require.NotEmpty(t, name)
			require.LessOrEqual(t, len(name), MaxNameLength)
			require.Equal(t, prefix+name, k.lock)
			require.NotEqual(t, k.lock, k.fence)
			require.Equal(t, slotText(k.lock), slotText(k.fence), "%q and %q", k.lock, k.fence)
			require.Equal(t, slotText(k.lock), slotText(k.line()), "%q and %q", k.lock, k.line())
			used = append(used, k)
		}
		if len(used) == 2 && first != second {
			for _, key := range []string{used[0].lock, used[0].fence, used[0].line()} {
				require.NotContains(t, []string{used[1].lock, used[1].fence, used[1].line()}, key, "of %q and %q with prefix %q", first, second, prefix)
			}
		}
	})
}

// What a server says of itself is an error or a description that the restart rule can work with.
func FuzzInfo(f *testing.F) {
	for _, text := range []string{
		"# Server\r\nredis_version:7.2.4\r\nrun_id:abc\r\nuptime_in_seconds:12\r\nserver_time_usec:1700000000000000\r\n",
		"run_id:abc\nuptime_in_seconds:-5\nrole:slave\nconnected_slaves:2\nmaster_replid2:8f3c\nmaxmemory_policy:allkeys-lru",
		"run_id:abc\r\nuptime_in_seconds:9223372036854775807\r\nserver_time_usec:9223372036854775807\r\nconnected_slaves:-1\r\n",
		"run_id:a\r\nuptime_in_seconds:9223372037\r\nserver_time_usec:-9223372036854775808", "run_id:a\r\nuptime_in_seconds:18446744080\r\n",
		"run_id:\r\nuptime_in_seconds:1", "run_id:a", "uptime_in_seconds:1", "", ":", "::\r\n:", "run_id:a\r\nrun_id:b\r\nuptime_in_seconds:1e9", "\x00:\xff",
		"run_id:a\r\nuptime_in_seconds:1\r\nrole:\r\nmaster_replid2:0", "run_id:a\r\nuptime_in_seconds:99999999999999999999",
	} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, replaces bool) {
		fields := map[string]string{}
		addFields(fields, text)
		info, err := parseInfo(fields)
		if err != nil {
			require.ErrorIs(t, err, errNoRunID)
			return
		}
		require.NotEmpty(t, info.runID)
		require.GreaterOrEqual(t, info.uptime, time.Duration(0))
		_ = info.warnings()
		const now, maxTTL = time.Hour, 10 * time.Second
		n := &node{fleet: &fleet{maxTTL: maxTTL}}
		end := n.quarantineEnd(now, replaces, info)
		require.LessOrEqual(t, end, now+maxTTL+maxTTL/100+2*time.Millisecond, "no longer than the maximum TTL and its drift")
		if info.promoted || info.uptime < maxTTL {
			require.Greater(t, end, now, "uptime %v, promoted %v", info.uptime, info.promoted)
		} else if !replaces || info.replicationKnown {
			require.LessOrEqual(t, end, now+2*time.Second, "uptime %v", info.uptime)
		}
	})
}

// A proposal is above the fence that it answers and within Lua's numbers, or there is none; however
// wrong the clock is.
func FuzzProposals(f *testing.F) {
	f.Add(int64(0), int64(0), int64(0))
	f.Add(int64(1_764_000_000_000_000), int64(1<<53-1), int64(5))
	f.Add(int64(-62_135_596_800_000_000), int64(1<<53-2), int64(1<<53))
	f.Add(int64(1<<52), int64(0), int64(1<<52+1))
	f.Add(int64(0), int64(1<<62), int64(1<<62))
	f.Add(int64(1<<53), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, wall, floor, seen int64) {
		var ours tokens
		now := time.UnixMicro(wall)
		ours.observe(now, Token(max(0, seen)))
		last := Token(0)
		for range 3 {
			token, err := ours.next(now, Token(max(0, floor)))
			if err != nil {
				require.ErrorIs(t, err, ErrTokensExhausted)
				require.GreaterOrEqual(t, max(Token(floor), Token(wall)+maxAhead), maxToken-3, "there is one above %d in %d", floor, wall)
				return
			}
			require.Greater(t, token, Token(floor))
			require.Positive(t, token)
			require.LessOrEqual(t, token, maxToken, "what Lua holds")
			if floor <= wall {
				require.Greater(t, token, last)
			}
			last = token
		}
	})
}
