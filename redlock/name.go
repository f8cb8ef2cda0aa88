package redlock

import (
	"fmt"
	"strings"
)

// MaxNameLength is the longest name of a lease, in bytes.
const MaxNameLength = 512

// What marks the fence key of a name. Names with a hash tag of their own have another ending, so
// that "a" and "{a}" do not share a fence where the prefix is empty.
const (
	fenceSuffix       = ":fence"
	taggedFenceSuffix = ":fence:tagged"
	// And the key of those in line.
	lineSuffix       = ":line"
	taggedLineSuffix = ":line:tagged"
)

// newsSuffix marks the channel of a name's news, where the name has no hash tag of its own. It is
// under the key prefix, as the lock key is, so that the same rule of access covers both, and can be
// no name's lock key: either the '}' has no hash tag before it, or the ending is kept for keys of names.
const newsSuffix = "}" + fenceSuffix

// keys are the two keys of one name on every node, which share a hash slot.
type keys struct {
	lock  string // the owner, with the TTL; also the channel that wakes those who wait for the name
	fence string // the fence and the state; outlives the lock
}

// news is no key, but the channel that wakes those who watch the name.
func (k keys) news() string {
	if hasHashTag(k.lock) {
		return k.fence
	}
	return k.lock + newsSuffix
}

// keysOf maps a name to its keys. The lock key is prefix + name and nothing else, so that a
// plain Redlock client that uses the same key excludes us and is excluded.
func keysOf(prefix, name string) (keys, error) {
	switch {
	case name == "":
		return keys{}, fmt.Errorf("%w: it is empty; give the resource a name", ErrInvalidName)
	case len(name) > MaxNameLength:
		return keys{}, fmt.Errorf("%w: %q… has %d bytes, the limit is %d; shorten it or use a hash of it",
			ErrInvalidName, name[:32], len(name), MaxNameLength)
	}
	lock := prefix + name
	if hasHashTag(lock) {
		for _, kept := range []string{fenceSuffix, taggedFenceSuffix, lineSuffix, taggedLineSuffix} {
			if strings.HasSuffix(lock, kept) {
				return keys{}, fmt.Errorf("%w: %q ends, behind a hash tag, in %q, which is kept for keys of names", ErrInvalidName, name, kept)
			}
		}
		return keys{lock: lock, fence: lock + taggedFenceSuffix}, nil
	}
	if strings.Contains(lock, "}") {
		return keys{}, fmt.Errorf("%w: %q has a '}' without a hash tag {…} before it, so its two keys could not share a hash slot",
			ErrInvalidName, name)
	}
	return keys{lock: lock, fence: "{" + lock + "}" + fenceSuffix}, nil
}

// line is the key of the processes that wait for the name, in the same slot: see lua/release.lua.
func (k keys) line() string {
	if hasHashTag(k.lock) {
		return k.lock + taggedLineSuffix
	}
	return "{" + k.lock + "}" + lineSuffix
}

// hasHashTag reports whether Redis Cluster would hash only a part of the key: what stands
// between its first '{' and the first '}' behind that, when that is not empty.
func hasHashTag(key string) bool {
	_, rest, found := strings.Cut(key, "{")
	if !found {
		return false
	}
	tag, _, found := strings.Cut(rest, "}")
	return found && tag != ""
}
