package redlock

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheKeysOfANameShareAHashSlot(t *testing.T) {
	for _, prefix := range []string{"", "quorate:", "app{x}:"} {
		for _, name := range []string{"sku:42", "a{b}c", "{t}", "a{b", "x{y}z{w}", "nullbyte\x00", "ünïcode", "{a}{b}"} {
			k, err := keysOf(prefix, name)
			require.NoError(t, err, "%q %q", prefix, name)
			require.Equal(t, prefix+name, k.lock)
			require.Equal(t, slotText(k.lock), slotText(k.fence), "%q and %q", k.lock, k.fence)
			require.NotEqual(t, k.lock, k.fence)
		}
	}
}

func TestNamesWhoseKeysCouldNotShareASlotAreRefused(t *testing.T) {
	for _, name := range []string{"", "a}b", "a{}b", "}{", strings.Repeat("x", MaxNameLength+1), "{a}x:fence", "{a}:fence:tagged"} {
		_, err := keysOf("", name)
		require.ErrorIs(t, err, ErrInvalidName, "%q", name)
	}
}

func TestTheBareNameIsTheLockKeyWithoutAPrefix(t *testing.T) {
	k, err := keysOf("", "resource")
	require.NoError(t, err)
	require.Equal(t, keys{lock: "resource", fence: "{resource}:fence"}, k)
	require.Equal(t, "resource}:fence", k.news())
}

func TestNoTwoNamesShareAKey(t *testing.T) {
	names := []string{"a", "a:fence", "{a}", "{quorate:a}", "{a}:f", "x{a}", "x{a}:fence:", "fence", "a{b", "a{b}", "{"}
	for _, prefix := range []string{"", DefaultKeyPrefix} {
		used := map[string]string{}
		for _, name := range names {
			k, err := keysOf(prefix, name)
			require.NoError(t, err, name)
			for _, key := range []string{k.lock, k.fence} {
				require.Empty(t, used[key], "%q of %q", key, name)
				used[key] = name
			}
		}
	}
}

// News on the channel of another name's releases would wake those who wait for that one, and those
// who watch would be counted among them.
func TestANamesNewsHaveAChannelOfTheirOwnUnderTheKeyPrefix(t *testing.T) {
	for _, prefix := range []string{"", DefaultKeyPrefix, "{", "a{b", "{x}:"} {
		used := map[string]string{}
		for _, name := range []string{"a", "a{", "a{b", "a{b}", "{", "{a", "{a}", "{{a}", "a:fence", "b", "b}"} {
			k, err := keysOf(prefix, name)
			if err != nil {
				continue
			}
			require.True(t, strings.HasPrefix(k.news(), prefix), "%q", k.news())
			require.Empty(t, used[k.news()], "%q of %q", k.news(), name)
			used[k.news()] = name
			_, err = keysOf("", k.news())
			require.ErrorIs(t, err, ErrInvalidName, "prefix %q, name %q: it is no lock's name", prefix, name)
		}
		require.NotEmpty(t, used)
	}
}

// slotText is what Redis Cluster hashes of a key, written from its specification.
func slotText(key string) string {
	s := strings.IndexByte(key, '{')
	if s < 0 {
		return key
	}
	e := strings.IndexByte(key[s+1:], '}')
	if e <= 0 {
		return key
	}
	return key[s+1 : s+1+e]
}
