package redlock

import (
	"strconv"
	"strings"
	"sync"
)

// slotCount is how many hash slots a Redis Cluster has.
const slotCount = 16384

// slotOf is the hash slot of a key: CRC16 (XMODEM) of its hash tag, or of all of it. go-redis has the
// same for itself only.
func slotOf(key string) int {
	if hasHashTag(key) {
		_, rest, _ := strings.Cut(key, "{")
		key, _, _ = strings.Cut(rest, "}")
	}
	var crc uint16
	for i := range len(key) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return int(crc % slotCount)
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

// slotKeys has a key for each slot: a go-redis client tells who serves a key, and not who serves a slot.
var slotKeys = sync.OnceValue(func() *[slotCount]string {
	var keys [slotCount]string
	for i, missing := 0, slotCount; missing > 0; i++ {
		key := strconv.Itoa(i)
		if slot := slotOf(key); keys[slot] == "" {
			keys[slot] = key
			missing--
		}
	}
	return &keys
})
