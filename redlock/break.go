package redlock

import (
	"context"
	"fmt"
)

// Break frees a name whoever holds it, and returns what the nodes knew of it before. It is for people who
// know that the holder will not release it, and cannot wait for the TTL; where nobody holds the name, it
// changes nothing.
//
// It breaks the promise that there is one holder at a time: who holds a valid lease finds out with its
// next extension, or when its validity ends, and until then the next holder acts beside it, and beside whom
// it hands the lease on to in its own process. Only a gate that refuses lower tokens protects what they
// write. The tokens of all others grow as ever. A holder that cannot reach the nodes which have confirmed
// the break may get the name back, if nobody has it, before its validity ends, and save under it.
//
// The error is nil when a quorum of nodes has confirmed that the name is free of the holders that the
// Status tells of. ErrNoQuorum: call it again; it does no harm. The others are those of Inspect.
func (l *Locker) Break(ctx context.Context, name string) (Status, error) {
	status, err := l.Inspect(ctx, name)
	if err != nil {
		return status, err
	}
	ctx, end, err := l.begin(ctx, "break", name)
	if err != nil {
		return status, err
	}
	defer end()
	k, err := keysOf(l.settings.keyPrefix, name)
	if err != nil {
		return status, fmt.Errorf("redlock: break: %w", err)
	}
	// Above every number that the broken lease can have: nodes that have lost its lock refuse its extensions.
	number, err := l.tokens.next(l.settings.clock.Now(), status.Token)
	if err != nil {
		return status, fmt.Errorf("redlock: break %q: %w", name, err)
	}
	broken := map[string]bool{}
	for _, n := range status.Nodes {
		if n.Holder == "" || broken[n.Holder] {
			continue
		}
		broken[n.Holder] = true
		e := ending{owner: n.Holder, number: number, grown: true, held: true, news: k.news()}
		r, err := l.vote(ctx, releaseStep(k, e, &l.settings))
		switch {
		case err != nil:
			return status, fmt.Errorf("redlock: break %q: %w", name, err)
		case !r.won:
			return status, r.failure("break", name, l.fleet.nodes)
		}
	}
	if len(broken) > 0 {
		l.settings.logger.Warn("redlock: name was freed by hand", "name", name, "holder", status.Holder, "token", status.Token)
	}
	return status, nil
}
