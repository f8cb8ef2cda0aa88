package recipes

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// bucket is a store with conditional writes. Between a Get and the PutIf behind it, before may do anything.
type bucket struct {
	mu     sync.Mutex
	now    version
	writes byte
	before func(*bucket)
}

func (b *bucket) Get(context.Context, string) (version, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now, nil
}

func (b *bucket) PutIf(_ context.Context, _ string, body []byte, token redlock.Token, etag string) error {
	if before := b.before; before != nil {
		b.before = nil
		before(b)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if etag != b.now.etag {
		return errChanged
	}
	b.writes++
	b.now = version{body: body, token: token, etag: string(rune('a' + b.writes))}
	return nil
}

func TestAnObjectIsNotWrittenByAnOlderTokenAlsoWhereTheNewerCameBetweenReadAndWrite(t *testing.T) {
	b := &bucket{}
	adding := func(text string) func([]byte) []byte {
		return func(old []byte) []byte { return append(append([]byte(nil), old...), text...) }
	}
	require.NoError(t, update(t.Context(), b, "report", 33, adding("a")))
	// The holder with 33 reads, and is paused; the one with 34 writes; the first goes on.
	b.before = func(b *bucket) { require.NoError(t, update(t.Context(), b, "report", 34, adding("b"))) }
	err := update(t.Context(), b, "report", 33, adding("late"))
	require.ErrorIs(t, err, fencing.ErrStaleToken)
	require.Equal(t, "ab", string(b.now.body))
	// A write of the same holder that was overtaken by another of its own is made again.
	b.before = func(b *bucket) { require.NoError(t, update(t.Context(), b, "report", 34, adding("c"))) }
	require.NoError(t, update(t.Context(), b, "report", 34, adding("d")))
	require.Equal(t, "abcd", string(b.now.body))
}
