package redlock

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1; nothing is secured by it.
	_ "embed"
	"encoding/hex"
	"strings"
)

// A script is one step of the protocol, atomic and idempotent on its node.
type script struct {
	name string
	src  string
	sha  string
}

func newScript(name, src string) *script {
	sum := sha1.Sum([]byte(src)) //nolint:gosec // see the import
	return &script{name: name, src: src, sha: hex.EncodeToString(sum[:])}
}

var (
	//go:embed lua/acquire.lua
	acquireSource string
	//go:embed lua/extend.lua
	extendSource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/save.lua
	saveSource string
	//go:embed lua/inspect.lua
	inspectSource string
	//go:embed lua/look.lua
	lookSource string
	//go:embed lua/wake.lua
	wakeSource string

	acquireScript = newScript("acquire", acquireSource)
	extendScript  = newScript("extend", extendSource)
	releaseScript = newScript("release", releaseSource)
	saveScript    = newScript("save", saveSource)
	inspectScript = newScript("inspect", inspectSource)
	lookScript    = newScript("look", lookSource)
	wakeScript    = newScript("wake", wakeSource)

	// A publication in a cluster goes to each of its servers, which would cost more with every shard
	// that is added. Who waits for a name listens at the server of its slot, so that one knows whether
	// anybody does. It publishes all the same where its user may not ask for that.
	shardReleaseScript = newScript("release", strings.Replace(releaseSource, releasePublishes, `  local heard = redis.pcall('PUBSUB', 'NUMSUB', KEYS[1])
  if not heard.err and heard[2] == 0 then
    return {1, 0}
  end
`+releasePublishes, 1))
)

// releasePublishes is where the release of a lease wakes those who wait for the name.
const releasePublishes = "  return {1, redis.call('PUBLISH', KEYS[1], ARGV[1])}\n"
