package redlock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSlotOfAKeyIsThatOfTheClusterSpecification(t *testing.T) {
	for key, slot := range map[string]int{
		"123456789":            0x31c3, // the check value of the specification
		"foo":                  12182,
		"":                     0,
		"{user1000}.following": slotOf("user1000"),
		"foo{bar}{zap}":        slotOf("bar"),
		"foo{{bar}}zap":        slotOf("{bar"),
		"foo{}{bar}":           plainSlot("foo{}{bar}"),
	} {
		require.Equal(t, slot, slotOf(key), key)
	}
	for slot, key := range slotKeys() {
		require.Equal(t, slot, slotOf(key))
	}
}

// plainSlot is the slot of a key that has no hash tag, bit by bit.
func plainSlot(key string) int {
	var crc uint16
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % slotCount)
}

func TestTheKeysOfANameShareASlot(t *testing.T) {
	for _, prefix := range []string{DefaultKeyPrefix, "", "{app}:", "a{"} {
		for _, name := range []string{"a", "sku:42", "a{b}c", "{a}", "a{b", "{", "a{}b{c}", "{}", "}", "a}b", "{}{b}", "ü{ö}", "{{a}}"} {
			k, err := keysOf(prefix, name)
			if err != nil {
				require.ErrorIs(t, err, ErrInvalidName)
				continue
			}
			require.Equal(t, slotOf(k.lock), slotOf(k.fence), "%q under %q", name, prefix)
			require.Equal(t, slotOf(k.lock), slotOf(k.line()), "%q under %q", name, prefix)
		}
	}
}

func TestTheReleaseInAClusterIsAScriptOfItsOwn(t *testing.T) {
	require.NotEqual(t, releaseScript.sha, shardReleaseScript.sha, "lua/release.lua has another text than the one looked for")
}
