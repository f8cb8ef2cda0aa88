package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// A desk is where a lane lays out a batch. It is cleared after each, and used again.
type desk struct {
	cmds    []*redis.Cmd
	replies []reply
	answers []answer
	open    []bool // to be told
}

func (d *desk) layOut(n int) {
	d.cmds = slices.Grow(d.cmds[:0], n)[:n]
	d.replies = slices.Grow(d.replies[:0], n)[:n]
	d.answers = slices.Grow(d.answers[:0], n)[:n]
	d.open = slices.Grow(d.open[:0], n)[:n]
}

func (d *desk) clear() {
	clear(d.cmds)
	clear(d.replies)
	clear(d.answers)
}

// send runs one batch and hands out its answers.
func (l *lane) send(batch []*op) {
	start := l.fleet.clock.Elapsed()
	l.desk.layOut(len(batch))
	defer l.desk.clear()
	replies, answers := l.desk.replies, l.desk.answers
	ctx, answered := l.limit(l.fleet.nodeTimeout)
	missing := l.pipeline(ctx, batch, l.desk.cmds, replies, evalSHA)
	answered()
	if missing >= 0 {
		// The node does not know a script. What came behind it is sent again as well, and so in
		// its order: every script may run twice.
		ctx, answered = l.limit(l.fleet.nodeTimeout)
		l.pipeline(ctx, batch[missing:], l.desk.cmds[missing:], replies[missing:], eval)
		answered()
	}
	// Only now is it known which connection carried the answers, and so whether they count.
	err := l.check()

	broken := err
	for i, o := range batch {
		switch {
		case replies[i].err != nil && !isReply(replies[i].err):
			broken = replies[i].err
			answers[i] = answer{verdict: failed, err: replies[i].err}
		case err != nil:
			answers[i] = answer{verdict: failed, err: err}
		default:
			answers[i] = l.judge(o, replies[i])
		}
	}
	l.settle(batch, answers)
	if broken != nil {
		l.distrust(broken)
		return
	}
	l.trust()
	end := l.fleet.clock.Elapsed()
	l.node.heard.Store(int64(end))
	l.fleet.telemetry.nodeAnswered(l.node, end-start)
}

// check asks the node who it is, where that is not known of every connection.
func (l *lane) check() error {
	if l.node.isChecked() {
		return nil
	}
	ctx, answered := l.limit(l.fleet.nodeTimeout)
	defer answered()
	return lateness(l.node.check(ctx))
}

type reply struct {
	value any
	err   error
}

// limit makes the context of one round trip. When its time is up the node is suspect. The
// context ends as well: that does not free a socket that is stuck in a read, unless the client
// has ContextTimeoutEnabled, but it keeps the client from retrying for many seconds what nobody
// waits for any more. A suspicion that has begun when the answer comes is over when answered returns: one
// that came later, after the node is trusted again, would find nobody who asks the node.
func (l *lane) limit(timeout time.Duration) (ctx context.Context, answered func()) {
	ctx, cancel := context.WithTimeoutCause(l.ctx, timeout, ErrNodeTimeout)
	suspected := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(suspected)
		l.distrust(context.Cause(ctx))
	})
	return ctx, func() {
		if !stop() {
			<-suspected
		}
		cancel()
	}
}

// How a command names its script: by its hash, or by its text.
const (
	evalSHA = "evalsha"
	eval    = "eval"
)

// pipeline runs ops in one round trip, by their scripts' hashes or texts. It returns the first
// whose script the node does not know, or -1.
func (l *lane) pipeline(ctx context.Context, batch []*op, cmds []*redis.Cmd, replies []reply, by string) (missing int) {
	pipe := l.node.client.Pipeline()
	for i, o := range batch {
		command := o.command // what Pipeline.EvalSha would make, but once for all nodes
		if by == eval {
			command = slices.Clone(command)
			command[0], command[commandScript] = eval, o.script.src
		}
		cmds[i] = redis.NewCmd(ctx, command...)
		cmds[i].SetFirstKeyPos(commandFirstKey)
		_ = pipe.Process(ctx, cmds[i]) // queues it
	}
	failed := execute(ctx, pipe)
	missing = -1
	for i, cmd := range cmds {
		value, err := cmd.Result()
		if failed != nil {
			value, err = nil, failed
		}
		replies[i] = reply{value, lateness(err)}
		if missing < 0 && err != nil && redis.HasErrorPrefix(replies[i].err, "NOSCRIPT") {
			missing = i
		}
	}
	return missing
}

// execute runs a pipeline. Its error is one that no command has: else each has its own. The client makes room
// for whatever length a reply announces, and panics where no memory has it: that is the node's fault, and not
// worth a process. And where the server refuses the password, it leaves the commands without an error.
func execute(ctx context.Context, pipe redis.Pipeliner) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the redis client panicked on the reply: %v", v)
		}
	}()
	cmds, err := pipe.Exec(ctx)
	if slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Err() != nil }) {
		return nil
	}
	return err
}

// judge turns a reply into an answer that may or may not count.
func (l *lane) judge(o *op, r reply) answer {
	// What is wrong with the node comes before what it says: a replica refuses every script.
	if err := l.node.fault(); err != nil {
		return answer{verdict: failed, err: err}
	}
	if r.err != nil {
		if redis.HasErrorPrefix(r.err, "BADFENCE") {
			r.err = fmt.Errorf("%w: the fence key %q holds no token; find out who writes to it, and delete it while nobody holds the name", r.err, o.key(1))
		}
		return answer{verdict: failed, err: r.err}
	}
	a, err := parseReply(o.script, r.value)
	if err != nil {
		return answer{verdict: failed, err: err}
	}
	a.quarantine = l.node.quarantine()
	return a
}

// settle hands out the answers of a batch, except to those that were told to stop waiting. A
// release that did not arrive is owed.
func (l *lane) settle(batch []*op, answers []answer) {
	l.mu.Lock()
	l.inFlight = nil
	open := l.desk.open
	for i, o := range batch {
		open[i] = !o.settled
		o.settled = true
		// A replica takes no writes, however often it is asked.
		lost := answers[i].verdict == failed && !isReply(answers[i].err) && !errors.Is(answers[i].err, ErrReplica)
		if o.isRelease() && lost {
			l.owe(o)
		}
	}
	l.mu.Unlock()
	for i, o := range batch {
		if open[i] {
			o.done(answers[i])
		}
	}
}

// lateness names what the client says when the context of a round trip has ended. It is ours, so
// that nobody may take it for the end of his own.
func lateness(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return ErrNodeTimeout
	case errors.Is(err, context.Canceled):
		return ErrClosed
	}
	return err
}

// isReply reports whether an error is the server's word on the command, rather than a broken
// connection or a server that cannot answer at all just now.
func isReply(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, not := range []string{"LOADING", "BUSY", "MASTERDOWN"} {
		if redis.HasErrorPrefix(err, not) {
			return false
		}
	}
	return true
}
