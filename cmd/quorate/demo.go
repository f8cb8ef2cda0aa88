package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

const (
	demoNodes    = 3
	demoReplicas = 3
	demoTTL      = 2 * time.Second
	// demoFaults is how often something happens.
	demoFaults = 6 * time.Second
)

func (c *console) demoCommand() *cli.Command {
	return &cli.Command{
		Name:        "demo",
		Usage:       "show a fleet at work, with faults, on nodes of its own",
		Description: "Runs three replicas of a service on three embedded nodes, all in this process: they elect a leader, run a job, and work on products, one at a time each. Now and then a leader is killed, or a node hangs or restarts without its memory; what happens is told on stderr, and shown by the dashboard. It needs no nodes. What is embedded is no Redis, but behaves as one here: see package redlocktest.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: dashboardAddress, Usage: "`ADDRESS` of the dashboard, on this machine; port 0 is any that is free"},
			&cli.DurationFlag{Name: "for", Usage: "how long to go on; default until it is interrupted"},
		},
		Action: c.demo,
	}
}

// A demo is the stage, and who is on it.
type demo struct {
	console *console
	nodes   *redlocktest.Fleet
	began   time.Time

	mu      sync.Mutex // also of what is written
	started int        // replicas so far
	leader  *demoReplica
	ended   sync.WaitGroup // of replicas
}

func (c *console) demo(ctx context.Context, cmd *cli.Command) error {
	if err := noArguments(cmd); err != nil {
		return err
	}
	length := cmd.Duration("for")
	if length < 0 {
		return usagef("--for %s: a time, or nothing to go on until it is interrupted", length)
	}
	listener, err := listenHere(cmd.String("listen"), false)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	if length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	nodes, err := redlocktest.New(demoNodes, redlocktest.WithTCP())
	if err != nil {
		return err
	}
	defer func() { _ = nodes.Close() }()
	d := &demo{console: c, nodes: nodes, began: time.Now()}

	quiet := slog.New(slog.DiscardHandler)
	locker, err := redlock.New(nodes.Clients(), redlock.WithIdentity("dashboard"), redlock.WithLogger(quiet),
		redlock.WithTTL(demoTTL), redlock.WithMaxTTL(2*demoTTL))
	if err != nil {
		return err
	}
	defer func() { _ = locker.Close() }()
	board, err := dashboard.New(locker, dashboard.WithHosts(ownHosts...), dashboard.WithLogger(quiet))
	if err != nil {
		return err
	}
	defer func() { _ = board.Close() }()

	ctx, stop := context.WithCancel(ctx)
	defer d.ended.Wait()
	defer stop()
	d.say("the dashboard is at http://%s", listener.Addr())
	d.say("in another terminal: export QUORATE_MAX_TTL=%s QUORATE_NODES=%s", 2*demoTTL, strings.Join(nodes.URLs(), ","))
	for range demoReplicas {
		if err := d.start(ctx); err != nil {
			return err
		}
	}
	d.ended.Go(func() { d.trouble(ctx) })
	err = serveBoard(ctx, listener, board)
	d.say("that was it")
	return err
}

// say tells what happens, and when.
func (d *demo) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = fmt.Fprintf(d.console.err, "%6.1fs  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// trouble lets something happen now and then.
func (d *demo) trouble(ctx context.Context) {
	acts := []func(context.Context){d.killLeader, d.hangNode, d.restartNode}
	for i := 0; pause(ctx, demoFaults); i++ {
		acts[i%len(acts)](ctx)
	}
}

// killLeader cuts the leader off from all nodes and ends it, so that nothing which it held is given back.
func (d *demo) killLeader(ctx context.Context) {
	d.mu.Lock()
	r := d.leader
	d.leader = nil
	d.mu.Unlock()
	if r == nil {
		return
	}
	d.say("%s, the leader, is killed: its locks last for up to %s", r.name, demoTTL)
	r.kill()
	if !pause(ctx, demoFaults/2) {
		return
	}
	if err := d.start(ctx); err != nil {
		d.say("no replica takes its place: %v", err)
	}
}

func (d *demo) hangNode(ctx context.Context) {
	i := rand.IntN(demoNodes)
	d.say("node %s hangs: the other two go on", d.nodes.Addrs()[i])
	d.nodes.Hang(i)
	pause(ctx, demoFaults)
	d.nodes.Resume(i)
	d.say("node %s answers again", d.nodes.Addrs()[i])
}

func (d *demo) restartNode(context.Context) {
	i := rand.IntN(demoNodes)
	d.nodes.RestartEmpty(i)
	d.say("node %s is restarted without its memory: its votes do not count for %s", d.nodes.Addrs()[i], 2*demoTTL)
}
