package fencing

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1; nothing is secured by it.
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/quorate/quorate/redlock"
)

// A Script is a Lua script that is run behind a gate: see RedisGate.Run. Make it once, with
// NewScript, and use it from many goroutines.
type Script struct {
	src string
	sha string
}

// NewScript puts the gate's check in front of the body of a script. The body is that of an
// ordinary Redis script: it finds the caller's keys and arguments in KEYS and ARGV, and what it
// returns is the result. Line numbers in errors are the body's. The body runs only when the
// token was admitted.
//
// The body must touch no keys but those in KEYS, and must not begin with a shebang line, which
// would have to be the first of the whole script.
func NewScript(body string) (*Script, error) {
	switch {
	case strings.TrimSpace(body) == "":
		return nil, fmt.Errorf("fencing: %w: the script is empty", redlock.ErrInvalidOption)
	case strings.HasPrefix(body, "#!"):
		return nil, fmt.Errorf("fencing: %w: the script begins with a shebang line; leave it out", redlock.ErrInvalidOption)
	}
	return newScript(body), nil
}

func newScript(body string) *Script {
	src := gateCheck + " " + body
	sum := sha1.Sum([]byte(src)) //nolint:gosec // see the import
	return &Script{src: src, sha: hex.EncodeToString(sum[:])}
}

var (
	//go:embed lua/gate.lua
	gateSource string
	//go:embed lua/admit.lua
	admitSource string
	//go:embed lua/set.lua
	setSource string
	//go:embed lua/hset.lua
	hsetSource string
	//go:embed lua/incrby.lua
	incrbySource string

	gateCheck = oneLine(gateSource)

	admitScript  = newScript(admitSource)
	setScript    = newScript(setSource)
	hsetScript   = newScript(hsetSource)
	incrbyScript = newScript(incrbySource)
)

// oneLine joins the lines of a script that has comments on lines of their own only.
func oneLine(src string) string {
	var b strings.Builder
	for line := range strings.Lines(src) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "--") {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String()
}
