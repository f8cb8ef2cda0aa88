package redlock

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1; nothing is secured by it.
	_ "embed"
	"encoding/hex"
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
	//go:embed lua/wake.lua
	wakeSource string

	acquireScript = newScript("acquire", acquireSource)
	extendScript  = newScript("extend", extendSource)
	releaseScript = newScript("release", releaseSource)
	saveScript    = newScript("save", saveSource)
	inspectScript = newScript("inspect", inspectSource)
	wakeScript    = newScript("wake", wakeSource)
)
