package fencing

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/redlock"
)

// fenceKey is the key of a resource's fence. It is in the hash slot of the key that is named
// like the resource, and of every key that has the resource, or its hash tag, as hash tag:
//
//	resource     fence key              data keys in its slot
//	sku:42       prefix{sku:42}         sku:42, stock:{sku:42}, …
//	cart:{7}     prefix=cart:{7}        cart:{7}, items:{7}, …
//
// The '=' keeps the fences of "7" and "{7}" apart.
func fenceKey(prefix, resource string) (string, error) {
	switch {
	case hasHashTag(resource):
		return prefix + "=" + resource, nil
	case strings.Contains(resource, "}"):
		return "", fmt.Errorf("%w: %q has a '}' without a hash tag {…} before it, so its fence could not share the hash slot of the data",
			redlock.ErrInvalidName, resource)
	}
	return prefix + "{" + resource + "}", nil
}

// hashTag is the part of a key that Redis Cluster hashes: what stands between its first '{' and
// the first '}' behind that, when that is not empty, or else the whole key.
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			return tag
		}
	}
	return key
}

func hasHashTag(key string) bool { return hashTag(key) != key }

// checkSlots looks for a key that a cluster could keep on another server than the fence. Keys
// with different tags may share a slot by chance; that is refused as well.
func checkSlots(fence string, keys []string) error {
	for _, key := range keys {
		if hashTag(key) != hashTag(fence) {
			return fmt.Errorf("%w: key %q; name it with the hash tag {%s}, so that fence and data are on one server",
				ErrOtherSlot, key, hashTag(fence))
		}
	}
	return nil
}
