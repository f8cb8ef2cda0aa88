package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/redlock"
)

// idleWaiter measures what it costs the nodes that somebody waits for a name which is held for long.
func idleWaiter(ctx context.Context, g *ground) (*finding, error) {
	const nodes = 5
	if err := g.clear(ctx); err != nil {
		return nil, err
	}
	holder, err := openQuorate(g.addrs(nodes), g.times)
	if err != nil {
		return nil, err
	}
	defer holder.close()
	lease, err := holder.locker.Acquire(ctx, "held", redlock.WithAutoExtend(true))
	if err != nil {
		return nil, err
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }()
	alone, err := g.idleCalls(ctx, nodes)
	if err != nil {
		return nil, err
	}

	waiter, err := openQuorate(g.addrs(nodes), g.times)
	if err != nil {
		return nil, err
	}
	defer waiter.close()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	won := make(chan error, 1)
	go func() {
		h, err := waiter.lock(waiting, "held")
		if err == nil {
			err = h.unlock(ctx)
		}
		won <- err
	}()
	// Until it has connections, has found that the name is taken, and has waited for a while: at first it looks often.
	if !pause(ctx, max(3*g.warm, g.idle/2)) {
		return nil, context.Cause(ctx)
	}
	both, err := g.idleCalls(ctx, nodes)
	if err != nil {
		return nil, err
	}
	if err := lease.Err(); err != nil {
		return nil, fmt.Errorf("the holder lost the name: %w", err)
	}
	stop()
	if err := <-won; waiting.Err() == nil || err == nil {
		return nil, fmt.Errorf("the waiter did not wait: %w", err)
	}
	perNode := func(n float64) float64 { return n / nodes / g.idle.Seconds() }
	t := table{Head: []string{"", "commands per node and second", "scripts per node and second"}}
	t.add("the holder alone, extended automatically", number(perNode(alone.total())), number(perNode(alone.scripts())))
	t.add("and a waiter with a Locker of its own", number(perNode(both.total())), number(perNode(both.scripts())))
	return &finding{
		How: fmt.Sprintf("One Locker holds a name and another waits for it, on five nodes, and is measured for %v after "+
			"half of that. The difference to the holder alone is the waiter. Commands within scripts are included.", g.idle),
		Aims:   []aim{atMost("commands of the waiter, per node and second", max(0, perNode(both.total()-alone.total())), 1, "")},
		Tables: []table{t},
	}, nil
}

func (g *ground) idleCalls(ctx context.Context, nodes int) (calls, error) {
	before, err := g.calls(ctx, nodes)
	if err != nil {
		return nil, err
	}
	if !pause(ctx, g.idle) {
		return nil, context.Cause(ctx)
	}
	after, err := g.calls(ctx, nodes)
	return since(before, after), err
}

// elapsed is a time as a table has it.
func elapsed(d time.Duration) string {
	if d >= time.Second {
		return number(d.Seconds()) + " s"
	}
	return number(ms(d)) + " ms"
}
