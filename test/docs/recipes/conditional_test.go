package recipes

import (
	"context"
	"errors"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// region object-store
// A version is an object as it was read: its etag, and the token in its metadata.
type version struct {
	body  []byte
	token redlock.Token // 0 if there is none
	etag  string        // "" if there is no object yet
}

type objectStore interface {
	Get(ctx context.Context, key string) (version, error)
	// PutIf writes if the etag is still that of the object: If-Match, or If-None-Match: * for "".
	PutIf(ctx context.Context, key string, body []byte, token redlock.Token, etag string) error
}

var errChanged = errors.New("the object has changed") // 412 Precondition Failed

func update(ctx context.Context, s objectStore, key string, token redlock.Token, change func([]byte) []byte) error {
	for {
		old, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		if old.token > token {
			return &fencing.StaleError{Resource: key, Token: token, Seen: old.token}
		}
		err = s.PutIf(ctx, key, change(old.body), token, old.etag)
		if !errors.Is(err, errChanged) {
			return err
		}
	}
}

// endregion
