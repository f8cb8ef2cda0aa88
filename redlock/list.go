package redlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/quorate/quorate/internal/quorum"
)

const (
	scanPage = 1000 // keys that a node looks at for one page
	listPage = 256  // names that are asked about at the same time
)

// A Filter says which names List tells of. The zero Filter is all that the nodes know: each name that was
// used within the fence TTL (WithFenceTTL, 24 h by default).
type Filter struct {
	Held   bool   // only names that are held on some node, by whichever client
	Prefix string // only names that begin so
}

// List asks the nodes for the names that they know, and about each of them, as Inspect does, and yields
// them in the order of the names. It is for people and monitoring: it goes through all keys of all nodes by
// SCAN, some thousand at a time, and keeps the names in memory. The user that the nodes are asked as
// needs the right +scan for it (docs/acl.md).
//
// What changes meanwhile may be told or not. A name that is held at a quorum from the beginning to the end
// is told. An error ends the list: an error that wraps ErrNoQuorum, when too few nodes could be asked for
// their names to be sure of that, or about one of them; ErrClosed; the context's.
func (l *Locker) List(ctx context.Context, f Filter) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		names, err := l.names(ctx, f)
		if err != nil {
			yield(Status{}, err)
			return
		}
		for page := range slices.Chunk(names, listPage) {
			statuses, errs := l.inspectAll(ctx, page)
			for i := range page {
				if errs[i] == nil && f.Held && !statuses[i].anyHolder() {
					continue // released in between
				}
				if !yield(statuses[i], errs[i]) || errs[i] != nil {
					return
				}
			}
		}
	}
}

// anyHolder reports whether a node has a lock of the name.
func (s *Status) anyHolder() bool {
	return slices.ContainsFunc(s.Nodes, func(n NodeStatus) bool { return n.Holder != "" })
}

// inspectAll asks about some names at the same time, so that they share pipelines.
func (l *Locker) inspectAll(ctx context.Context, names []string) ([]Status, []error) {
	statuses, errs := make([]Status, len(names)), make([]error, len(names))
	var asked sync.WaitGroup
	for i, name := range names {
		asked.Go(func() { statuses[i], errs[i] = l.Inspect(ctx, name) })
	}
	asked.Wait()
	return statuses, errs
}

// names are those that the nodes know, in order, each once.
func (l *Locker) names(ctx context.Context, f Filter) ([]string, error) {
	ctx, end, err := l.begin(ctx, "list", f.Prefix)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := l.fleet.ready(ctx); err != nil {
		return nil, fmt.Errorf("redlock: list: %w", err)
	}
	var mu sync.Mutex
	found := map[string]struct{}{}
	failure := &QuorumError{Op: "list", Name: f.Prefix, Err: ErrNoQuorum, Quorum: quorum.Size(len(l.fleet.nodes))}
	var scanned sync.WaitGroup
	for _, lane := range l.fleet.lanes {
		scanned.Go(func() {
			err := l.scanNode(ctx, lane, f, func(name string) {
				mu.Lock()
				defer mu.Unlock()
				found[name] = struct{}{}
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failure.Nodes = append(failure.Nodes, &NodeError{Node: lane.node.name, Err: err})
				return
			}
			failure.Votes++
		})
	}
	scanned.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("redlock: list: %w", context.Cause(ctx))
	case failure.Votes < failure.Quorum:
		return nil, failure
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// scanNode finds the names on one node: in a cluster, on each of its shards.
func (l *Locker) scanNode(ctx context.Context, lane *lane, f Filter, each func(name string)) error {
	if lane.cluster == nil {
		return l.scan(ctx, lane, f, each)
	}
	shards := lane.cluster.all()
	if len(shards) == 0 {
		return lane.cluster.reason()
	}
	var errs []error
	for _, s := range shards {
		if err := l.scan(ctx, s.lane, f, each); err != nil {
			errs = append(errs, &NodeError{Node: s.node.name, Err: err})
		}
	}
	return errors.Join(errs...)
}

// scan finds the names on one server.
func (l *Locker) scan(ctx context.Context, lane *lane, f Filter, each func(name string)) error {
	prefix := l.settings.keyPrefix
	pattern := "*" + escapeGlob(prefix+f.Prefix) + "*" + fenceSuffix + "*"
	if f.Held {
		pattern = escapeGlob(prefix+f.Prefix) + "*"
	}
	for cursor := uint64(0); ; {
		if err := lane.suspicion(); err != nil {
			return err
		}
		type page struct {
			keys []string
			next uint64
		}
		p, err := bounded(ctx, l, func(ctx context.Context) (page, error) {
			keys, next, err := lane.node.client.ScanType(ctx, cursor, pattern, scanPage, "string").Result()
			return page{keys, next}, err
		})
		if err != nil {
			return err
		}
		for _, key := range p.keys {
			if name, ok := nameOf(prefix, key, f.Held); ok && strings.HasPrefix(name, f.Prefix) {
				each(name)
			}
		}
		if cursor = p.next; cursor == 0 {
			return nil
		}
	}
}

// nameOf is the name whose lock key, or else fence key, this is.
func nameOf(prefix, key string, lock bool) (name string, ok bool) {
	of := key
	if !lock {
		if inner, found := strings.CutSuffix(key, taggedFenceSuffix); found {
			of = inner
		} else if inner, found := strings.CutSuffix(key, "}"+fenceSuffix); found {
			of, _ = strings.CutPrefix(inner, "{")
		}
	}
	name, ok = strings.CutPrefix(of, prefix)
	if !ok {
		return "", false
	}
	k, err := keysOf(prefix, name)
	if err != nil || lock && k.lock != key || !lock && k.fence != key {
		return "", false
	}
	return name, true
}

var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// escapeGlob makes a pattern that matches the text and nothing else.
func escapeGlob(text string) string { return globEscaper.Replace(text) }
