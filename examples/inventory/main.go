// Inventory is a flash sale by an HTTP service: three replicas, 10,000 units of one product, and
// 300 buyers who want 12,000. It is held in four ways, to compare them:
//
//	no guard   read the stock, decide, write it: the classic race
//	row lock   the same in one transaction, by SELECT … FOR UPDATE
//	guard      the same under fencing.Guard, with the token admitted in the transaction that writes
//	batches    one guarded section and one transaction for all who wait in a replica
//
// In each of them the first replica that has sold a quarter is frozen between its read and its write, for
// longer than the TTL of its lease. At the end there is a table, and a verdict for each way. The program
// exits with 1 if a way that is to be correct was not.
//
//	go run .                                  # PostgreSQL, started for this run, or SQLite where there is none
//	go run . -database postgres://…           # or DATABASE_URL: a schema of its own, dropped at the end
//	go run . -nodes 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379
//	go run . -units 1000 -buyers 50 -replicas 5
//
// The replicas are processes, each with its own pool of connections. Without -nodes the nodes that give
// the leases are embedded. On real ones the keys begin with inventory-example:, and expire.
//
// The code to copy is in service.go, seller_guarded.go, seller_batch.go and store.go. The rest is the sale
// around it.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/internal/dbserver"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func main() {
	if cfg, ok, err := inherited(); ok || err != nil {
		os.Exit(replicaMain(cfg, err))
	}
	os.Exit(parentMain(os.Args[1:], os.Stdout, os.Stderr))
}

func replicaMain(cfg config, err error) int {
	logging.Disable() // go-redis reports each connection that the freeze breaks
	if err == nil {
		err = runReplica(cfg)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "replica %d: %v\n", cfg.Replica, err)
		return 1
	}
	return 0
}

func parentMain(args []string, out, errOut io.Writer) int {
	logging.Disable()
	o, err := parseFlags(args, errOut)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintln(errOut, "inventory:", err)
		return 2
	}
	// A second signal ends the program at once: the replicas then end by themselves.
	// SIGPIPE is that of an output that nobody reads to its end: what was made is to be taken away then, too.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	context.AfterFunc(ctx, stop)
	defer stop()
	correct, err := compare(ctx, o, out)
	if ctx.Err() != nil {
		err = context.Cause(ctx) // whatever has failed because of it
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(errOut, "inventory:", err)
		return 2
	case !correct:
		return 1
	}
	return 0
}

type options struct {
	sizes    sizes
	queue    int
	database string
	nodes    []string
}

func parseFlags(args []string, errOut io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("inventory", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.IntVar(&o.sizes.units, "units", 10_000, "units of the product; a fifth more are ordered")
	flags.IntVar(&o.sizes.buyers, "buyers", 300, "buyers at one time")
	flags.IntVar(&o.sizes.replicas, "replicas", 3, "replicas of the service")
	flags.DurationVar(&o.sizes.freeze, "freeze", 2500*time.Millisecond, "how long a replica is frozen, longer than the TTL of 1s; 0: not at all")
	flags.IntVar(&o.queue, "queue", 200, "buyers who may wait in line in a replica; the others are told to come again")
	flags.StringVar(&o.database, "database", "", "postgres:// URL, or postgres or sqlite to start one (default: $DATABASE_URL, PostgreSQL where it is installed, or SQLite)")
	nodes := flags.String("nodes", "", "nodes that give the leases: host:port or redis:// URLs, with commas between (default: three embedded ones)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("cannot read the flags: %w", err)
	}
	switch s := o.sizes; {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.units < 1 || s.buyers < 1 || s.replicas < 1 || o.queue < 1:
		return o, errors.New("-units, -buyers, -replicas and -queue have to be at least 1")
	case s.buyers < s.replicas:
		return o, fmt.Errorf("%d buyers leave some of %d replicas without any", s.buyers, s.replicas)
	case s.freeze != 0 && s.freeze <= ttl:
		return o, fmt.Errorf("-freeze %v is not longer than the TTL of %v, so nobody would be late; 0 freezes nobody", s.freeze, ttl)
	case s.freeze > 20*time.Second:
		return o, fmt.Errorf("-freeze %v is more than 20s", s.freeze)
	}
	o.sizes.orders = o.sizes.units + max(1, o.sizes.units/5)
	o.database = cmp.Or(o.database, os.Getenv("DATABASE_URL"))
	if *nodes != "" {
		o.nodes = strings.Split(*nodes, ",")
	}
	return o, nil
}

// compare holds a sale in each way, on one database and one set of nodes, and reports.
func compare(ctx context.Context, o options, out io.Writer) (correct bool, err error) {
	cfg := config{Run: strings.ToLower(rand.Text()[:8]), Nodes: o.nodes, Queue: o.queue}
	var note string
	var end func()
	if cfg.Database, note, end, err = findDatabase(ctx, o.database, cfg.Run, dbserver.StartPostgres); err != nil {
		return false, err
	}
	defer end()
	where := "real nodes"
	if len(cfg.Nodes) == 0 {
		nodes, err := redlocktest.New(3, redlocktest.WithTCP())
		if err != nil {
			return false, err
		}
		defer func() { _ = nodes.Close() }() // the process ends
		cfg.Nodes, where = nodes.Addrs(), "three embedded nodes"
	}
	if !canFreeze && o.sizes.freeze > 0 {
		o.sizes.freeze = 0
		where += "; nobody is frozen, as this system has no SIGSTOP"
	}
	db, _, err := cfg.Database.open()
	if err != nil {
		return false, err
	}
	defer func() { _ = db.Close() }() // nothing is left to be written

	_, _ = fmt.Fprintf(out, "database: %s\nleases:   of %v, from %s\n", note, ttl, where)
	_, _ = fmt.Fprintf(out, "sale:     %d units, %d orders, %d buyers at a time, %d replicas\n\n",
		o.sizes.units, o.sizes.orders, o.sizes.buyers, o.sizes.replicas)
	var results []*result
	for _, w := range ways {
		s, err := newSale(cfg, o.sizes, db, w)
		if err != nil {
			return false, err
		}
		r, err := s.hold(ctx)
		if err != nil {
			return false, fmt.Errorf("%s: %w", w, err)
		}
		_, _ = fmt.Fprintf(out, "%-9s took %s; %s\n", w, short(r.took), r.story())
		results = append(results, r)
	}
	waits := "sessions that waited for a lock of PostgreSQL"
	if cfg.Database.Dialect == fencing.SQLite {
		waits = "transactions that waited to begin (BEGIN IMMEDIATE)"
	}
	return printReport(out, results, waits), nil
}
