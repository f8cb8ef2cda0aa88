package redlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// listenLook is how often a listener looks at what it should listen to when no wake-up
	// gets through to it, and listenPing after how long a silence it asks for a sign of life.
	listenLook = time.Second
	listenPing = 5 * time.Second
)

// A listener is the subscription of this process at one node, or at one shard of it.
//
// One goroutine does all of it, because a subscription of go-redis is locked while it connects,
// which takes seconds when a node hangs. A change of the names is noticed when the goroutine
// next wakes; to wake it at once, the change is published to it on a channel of its own.
type listener struct {
	watches *watches
	lane    *lane
	inbox   string
	ended   chan struct{}

	// Only its goroutine looks at these.
	warned    bool            // of a node that refuses
	listening map[string]bool // channel → the node has confirmed it

	mu      sync.Mutex
	changes map[string]bool // channel → wanted
}

// newListener makes a listener where a channel is. In a cluster, its inbox is in the same slot, since
// the client connects to the server of the first channel that it is given.
func newListener(ws *watches, l *lane, channel string) *listener {
	tag := ""
	if l.cluster != nil {
		tag = "{" + slotKeys()[slotOf(channel)] + "}"
	}
	return &listener{watches: ws, lane: l, inbox: ws.prefix + "inbox/" + tag + rand.Text(),
		ended: make(chan struct{}), listening: map[string]bool{}, changes: map[string]bool{}}
}

func (l *listener) want(channel string, wanted bool) {
	l.mu.Lock()
	l.changes[channel] = wanted
	l.mu.Unlock()
	l.wake()
}

func (l *listener) wake() {
	l.lane.submit(&op{step: wakeStep(l.inbox), done: func(answer) {}})
}

func (l *listener) run() {
	defer close(l.ended)
	ctx := l.watches.ctx
	sub := l.lane.node.client.Subscribe(ctx)
	defer func() { _ = sub.Close() }()
	// Errors of Subscribe and Unsubscribe need no care: the client subscribes to what it was
	// told when it connects again.
	_ = sub.Subscribe(ctx, l.inbox)
	quiet := time.Duration(0)
	retry := newBackoff(50*time.Millisecond, time.Second)
	for {
		if ctx.Err() != nil {
			return
		}
		add, drop := l.diff()
		if len(add) > 0 {
			_ = sub.Subscribe(ctx, add...)
		}
		if len(drop) > 0 {
			_ = sub.Unsubscribe(ctx, drop...)
		}
		message, err := receive(ctx, sub)
		var timeout net.Error
		switch {
		case err == nil:
			quiet = 0
			retry.Reset()
			l.receive(message)
		case errors.As(err, &timeout) && timeout.Timeout():
			if quiet += listenLook; quiet >= listenPing {
				quiet = 0
				_ = sub.Ping(ctx)
			}
		default:
			l.refused(err)
			l.pause(retry.NextBackOff())
		}
	}
}

// receive waits for a message; see execute for the panic.
func receive(ctx context.Context, sub *redis.PubSub) (message any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the redis client panicked on a message: %v", v)
		}
	}()
	return sub.ReceiveTimeout(ctx, listenLook)
}

// refused tells the operator, once, of a node that lets nobody subscribe.
func (l *listener) refused(err error) {
	if l.warned || !redis.HasErrorPrefix(err, "NOPERM") {
		return
	}
	l.warned = true
	node := l.lane.node
	node.fleet.logger.Warn("redlock: node refuses subscriptions; those who wait for a name ask again at intervals instead of being woken; allow +subscribe, +unsubscribe and the channels of the key prefix to its user",
		"node", node.name, "error", err)
}

func (l *listener) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.watches.ctx.Done():
	}
}

// diff tells what has changed in what the listener should listen to.
func (l *listener) diff() (add, drop []string) {
	l.mu.Lock()
	var again []string
	for channel, wanted := range l.changes {
		confirmed, listening := l.listening[channel]
		switch {
		case wanted && !listening:
			add = append(add, channel)
			l.listening[channel] = false
		case wanted && confirmed:
			again = append(again, channel)
		case !wanted && listening:
			drop = append(drop, channel)
			delete(l.listening, channel)
		}
	}
	clear(l.changes)
	l.mu.Unlock()
	// A channel that was given up and is wanted again before this goroutine woke: the node will
	// not confirm it a second time.
	for _, channel := range again {
		l.watches.notify(l.lane.node.index, channel, "")
	}
	return add, drop
}

func (l *listener) receive(message any) {
	switch m := message.(type) {
	case *redis.Subscription:
		if m.Kind == "subscribe" {
			if _, listening := l.listening[m.Channel]; listening {
				l.listening[m.Channel] = true
			}
			l.watches.notify(l.lane.node.index, m.Channel, "")
		}
	case *redis.Message:
		l.watches.notify(l.lane.node.index, m.Channel, m.Payload)
	}
}
