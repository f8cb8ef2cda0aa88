package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quorate/quorate/redlock"
)

// Transfer ends the term, as Resign does, with ErrTransferred as the cause, and has the candidate
// with this identity follow: the others who win give the lease back and stand back, without a term.
// They do so for a quarter of the TTL at most, so an heir who is dead, unhealthy, not eligible, unknown or
// standing back after a failure delays nobody for long; then whoever wins leads. Several candidates with
// this identity are all heirs. An heir is not kept waiting by its priority, or by a resignation of its own.
//
// Transfer waits until the function has returned, the lease is released and the next term has begun,
// and returns nil if that is the heir's. ctx bounds the waiting only. Called by the leading function
// itself, with its context or one made from it, it does not wait: the function has to return.
//
// Errors: ErrNotLeader; redlock.ErrInvalidOption for an identity that is empty, too long, or this
// elector's own; ErrHeirAbsent when another leads instead; ErrNoLeader when nobody does within two
// TTLs; ctx's cause, while the rest happens in the background; those of Resign.
func (e *Elector) Transfer(ctx context.Context, identity string) error {
	if err := e.transfer(ctx, identity); err != nil {
		return fmt.Errorf("leader: transfer %q to %.64q: %w", e.name, identity, err)
	}
	return nil
}

func (e *Elector) transfer(ctx context.Context, identity string) error {
	if err := e.validHeir(identity); err != nil {
		return err
	}
	t, within := e.meant(ctx)
	if t == nil || !e.end(t, identity, ErrTransferred) {
		return ErrNotLeader
	}
	if within {
		return nil
	}
	if err := t.gone(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*e.settings.ttl, ErrNoLeader)
	defer cancel()
	for next := range e.Watch(ctx) {
		switch {
		case next.Number <= t.term.Number: // the vacancy in between
		case next.Leader != identity:
			return fmt.Errorf("%w: %.64q leads in term %d; check that it runs, is healthy and eligible, and has this identity",
				ErrHeirAbsent, next.Leader, next.Number)
		default:
			return nil
		}
	}
	if ctx.Err() == nil {
		return redlock.ErrClosed
	}
	return context.Cause(ctx)
}

func (e *Elector) validHeir(identity string) error {
	if err := validIdentity(identity); err != nil {
		return err
	}
	if identity == e.identity {
		return fmt.Errorf("%w: it is this elector's own identity", redlock.ErrInvalidOption)
	}
	if text, err := json.Marshal(identity); err != nil || len(text) > heirSize {
		return errors.Join(fmt.Errorf("%w: the identity takes %d bytes as JSON, the limit is %d", redlock.ErrInvalidOption, len(text), heirSize), err)
	}
	return nil
}

// heirSize is the room for an heir in a record.
const heirSize = 600
