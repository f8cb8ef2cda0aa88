package redlock

import (
	"bytes"
	"context"
	"fmt"
)

// State is the value that was saved last under this name, by this lease or by a holder before
// it; nil if there is none. It is the newest value that any holder was told is saved.
func (l *Lease) State() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.state.value)
}

// Save stores a value under the lease, for the next holders of the name. When it returns nil, a
// quorum has the value and no holder before this one can change it any more. The value lives as
// long as the fence: WithFenceTTL, counted from the name's last use.
//
// Errors: ErrStateTooLarge above MaxStateSize; ErrStaleToken when another has acquired the name
// since; ErrNoQuorum; the lease's own error when it has ended, also when that was before the quorum
// had answered. After any of these, or when ctx ends first, the value may or may not be there, and
// a later holder may find it though the next one did not: save it again, or save something else
// over it.
func (l *Lease) Save(ctx context.Context, value []byte) error {
	return l.save(ctx, value, "")
}

// Publish is Save, and wakes those who Watch the name, in any process, also when the lease is
// released; not those who wait to acquire it. It costs the nodes one call more than Save does, and
// so does the release.
func (l *Lease) Publish(ctx context.Context, value []byte) error {
	return l.save(ctx, value, l.keys.news())
}

func (l *Lease) save(ctx context.Context, value []byte, news string) error {
	if len(value) > MaxStateSize {
		return fmt.Errorf("redlock: save %q: %w: %d bytes, the limit is %d; store the data elsewhere and save a reference to it",
			l.name, ErrStateTooLarge, len(value), MaxStateSize)
	}
	locker := l.locker
	l.mu.Lock()
	if l.remaining() == 0 {
		l.mu.Unlock()
		l.endIfDue()
		return l.Err()
	}
	l.published = l.published || news != ""
	l.sequence++
	l.unsaved++
	v := version{token: l.token, sequence: l.sequence, value: bytes.Clone(value)}
	l.mu.Unlock()

	r, err := locker.vote(ctx, saveStep(l.keys, l.owner, v, news, &locker.settings))
	if err != nil {
		return fmt.Errorf("redlock: save %q: %w", l.name, err)
	}
	if !r.won {
		return r.failure("save", l.name, locker.fleet.nodes)
	}
	l.mu.Lock()
	late := l.remaining() == 0
	if !late && l.state.before(v) {
		l.state = v
	}
	if !late {
		l.unsaved--
	}
	l.mu.Unlock()
	if late {
		// It may have been accepted behind the back of a later holder: an extension that came late
		// can have put our lock back where that one has come and gone.
		l.endIfDue()
		return fmt.Errorf("redlock: save %q: %w; whether a later holder finds the value is not known", l.name, l.Err())
	}
	return nil
}
