package redlock

import (
	"crypto/rand"
	"os"
	"strconv"
	"strings"
)

// maxOwner is the length of the longest owner that newOwner makes.
const maxOwner = MaxIdentityLength + 1 + 26

// newOwner returns the value of one acquisition: the readable identity, and at least 128 random
// bits, so that no two acquisitions of any client ever share one ("This value must be unique
// across all clients and all lock requests.").
func newOwner(identity string) string {
	return identity + "/" + rand.Text()
}

func defaultIdentity() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	host = host[:min(len(host), MaxIdentityLength/2)]
	return strings.ToValidUTF8(host, "?") + ":" + strconv.Itoa(os.Getpid())
}
