package fencing

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/redlock"
)

// Headers of a request that is made under a guard. The resource is percent-encoded as in a path, so
// that any name fits; the token is decimal. Where there are several resources, the nth of the one
// belongs to the nth of the other, whether they come as lines of their own or as one with commas. A
// refusal has both as well: the resource, and the highest token that the gate has admitted for it.
const (
	HeaderResource = "Quorate-Resource"
	HeaderToken    = "Quorate-Token"
)

// maxHeaderTokens bounds the resources of one request: each costs the gate a round trip.
const maxHeaderTokens = 64

// SetHeader puts the tokens into the headers of a request, in place of any that are there.
func (t Tokens) SetHeader(h http.Header) {
	h.Del(HeaderResource)
	h.Del(HeaderToken)
	for _, resource := range slices.Sorted(maps.Keys(t)) {
		h.Add(HeaderResource, url.PathEscape(resource))
		h.Add(HeaderToken, strconv.FormatInt(int64(t[resource]), 10))
	}
}

// ParseHeader reads the tokens of a request. The error wraps ErrNoToken where there are none, and
// ErrInvalidHeader where they cannot be what SetHeader has written.
func ParseHeader(h http.Header) (Tokens, error) {
	resources, numbers := items(h, HeaderResource), items(h, HeaderToken)
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("fencing: %w: "+format, append([]any{ErrInvalidHeader}, args...)...)
	}
	switch {
	case len(resources) == 0 && len(numbers) == 0:
		return nil, fmt.Errorf("fencing: %w: the request has no %s; make it under a guard, by a client with Transport", ErrNoToken, HeaderToken)
	case len(resources) != len(numbers):
		return nil, invalid("%d in %s and %d in %s; each resource has its token", len(resources), HeaderResource, len(numbers), HeaderToken)
	case len(resources) > maxHeaderTokens:
		return nil, invalid("%d resources, the limit is %d", len(resources), maxHeaderTokens)
	}
	tokens := make(Tokens, len(resources))
	for i, escaped := range resources {
		resource, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, invalid("%s %.80q is not percent-encoded", HeaderResource, escaped)
		}
		if err := checkResource(resource); err != nil {
			return nil, invalid("%s: %w", HeaderResource, err)
		}
		if _, twice := tokens[resource]; twice {
			return nil, invalid("%s %.80q is there twice", HeaderResource, resource)
		}
		if tokens[resource], err = parseToken(numbers[i]); err != nil {
			return nil, invalid("%s %.80q: %w", HeaderToken, numbers[i], err)
		}
	}
	return tokens, nil
}

// items are the values of a header, of all its lines.
func items(h http.Header, name string) []string {
	lines := h.Values(name)
	if len(lines) == 0 {
		return nil
	}
	values := strings.Split(strings.Join(lines, ","), ",")
	for i, v := range values {
		values[i] = strings.Trim(v, " \t")
	}
	return values
}

// parseToken reads a token as it is written, and in no other way: one that two programs could read as
// two numbers is none.
func parseToken(s string) (redlock.Token, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("%w: it is not a decimal number", ErrInvalidToken)
	}
	return redlock.Token(n), checkToken(redlock.Token(n))
}
