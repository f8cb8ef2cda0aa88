package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/internal/quorum"
	"github.com/quorate/quorate/redlock"
)

const (
	crowd = 64 // goroutines of the parts with many
	// shortestBench is how long a part has to be for its figures to mean anything.
	shortestBench = 100 * time.Millisecond
	longestBench  = 10 * time.Minute
	// maxSamples bounds the memory of a part: some minutes of the fastest fleet. Behind them, rounds are counted
	// and not kept.
	maxSamples = 4 << 20
)

func (c *console) benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "measure what leases cost on this fleet, from this machine",
		Description: "Measures, one after the other: the round trip to a quorum of nodes, acquiring and releasing by one goroutine, by 64 with a name each, and by 64 that want one name. It uses names of its own (quorate-bench/ and random letters), which expire. " +
			"It is a load on the nodes, and slows down whatever else uses them; so it asks first, for which it needs a terminal; --yes answers.",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "for", Value: 5 * time.Second, Usage: "how long each of the four parts lasts, 100ms to 10m"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
		},
		Action: c.bench,
	}
}

// A measurement is one part of the bench.
type measurement struct {
	What   string  `json:"what"`
	Rounds int     `json:"rounds"`
	Failed int     `json:"failed"`
	Rate   float64 `json:"per_second"`
	P50    float64 `json:"p50_us"`
	P99    float64 `json:"p99_us"`
	Max    float64 `json:"max_us"`
	Error  string  `json:"error,omitempty"` // the first
}

func (c *console) bench(ctx context.Context, cmd *cli.Command) error {
	asJSON, err := isJSON(cmd)
	if err != nil {
		return err
	}
	if err := noArguments(cmd); err != nil {
		return err
	}
	length := cmd.Duration("for")
	if length < shortestBench || length > longestBench {
		return usagef("--for %s: between %s and %s", length, shortestBench, longestBench)
	}
	if !cmd.Bool("yes") && !c.interactive() {
		return usagef("bench: it loads the nodes, and nobody can be asked, because this is no terminal; --yes measures without a question")
	}
	f, err := c.openForLooking(cmd, redlock.WithFenceTTL(2*cmd.Duration("max-ttl")))
	if err != nil {
		return err
	}
	pings := newPinger(f.clients)
	defer pings.asked.Wait() // which close brings about
	defer f.close()
	if _, err := f.locker.Check(ctx); err != nil {
		if errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, redlock.ErrSameServer) {
			return err
		}
		c.say("not all is well with the fleet, see quorate doctor: %v", err)
	}
	c.say("measures %s for %s, as fast as they go", count(len(f.clients), "node"), 4*length)
	if !cmd.Bool("yes") {
		answer, err := c.ask(ctx, "That slows down whatever else uses them. Go on? [y/N] ")
		if err != nil {
			return err
		}
		if !strings.HasPrefix(strings.ToLower(answer), "y") {
			return errors.New("nothing was measured")
		}
	}
	return c.measure(ctx, f, pings, length, asJSON)
}

// measure makes all parts, and tells of each as soon as it is over.
func (c *console) measure(ctx context.Context, f *fleet, pings *pinger, length time.Duration, asJSON bool) error {
	own := "quorate-bench/" + randomText() + "/"
	lease := func(name func(worker int) string) func(context.Context, int) error {
		return func(ctx context.Context, worker int) error {
			l, err := f.locker.Acquire(ctx, own+name(worker))
			if err != nil {
				return err
			}
			return l.Release(context.WithoutCancel(ctx)) // nothing is left behind
		}
	}
	parts := []struct {
		what    string
		workers int
		round   func(ctx context.Context, worker int) error
	}{
		{"round trip to a quorum", 1, func(ctx context.Context, _ int) error { return pings.ping(ctx) }},
		{"acquire and release, 1 goroutine", 1, lease(func(int) string { return "alone" })},
		{"acquire and release, 64 goroutines", crowd, lease(strconv.Itoa)},
		{"acquire and release, 64 want one name", crowd, lease(func(int) string { return "hot" })},
	}
	var failed error
	rows := newTable("WHAT", "PER SECOND", "P50", "P99", "MAX", "FAILED")
	for _, part := range parts {
		m, err := repeat(ctx, length, part.workers, part.round)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failed = errors.Join(failed, err)
		m.What = part.what
		if asJSON {
			if err := printLine(c.out, m); err != nil {
				return err
			}
			continue
		}
		rows.add(m.What, strconv.FormatFloat(m.Rate, 'f', 0, 64), microseconds(m.P50), microseconds(m.P99), microseconds(m.Max), strconv.Itoa(m.Failed))
	}
	if asJSON {
		return failed
	}
	return errors.Join(rows.print(c.out), failed)
}

func microseconds(us float64) string {
	return precise(time.Duration(us * float64(time.Microsecond)))
}

// repeat makes rounds for a while. The error is the first that occurred, where no round succeeded.
func repeat(ctx context.Context, length time.Duration, workers int, round func(context.Context, int) error) (measurement, error) {
	var mu sync.Mutex
	var m measurement
	var first error
	var took []time.Duration
	began := time.Now()
	ctx, cancel := context.WithDeadline(ctx, began.Add(length))
	defer cancel()
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				asked := time.Now()
				err := round(ctx, w)
				d := time.Since(asked)
				mu.Lock()
				switch {
				case err == nil:
					m.Rounds++
					if len(took) < maxSamples {
						took = append(took, d)
					}
				case ctx.Err() != nil: // its time is over
				default:
					m.Failed++
					if first == nil {
						first = err
					}
				}
				mu.Unlock()
				if err != nil && ctx.Err() == nil {
					pause(ctx, failurePause)
				}
			}
		})
	}
	all.Wait()
	m.Rate = float64(m.Rounds) / time.Since(began).Seconds()
	if len(took) > 0 {
		slices.Sort(took)
		at := func(share float64) float64 {
			return float64(took[int(share*float64(len(took)-1))]) / float64(time.Microsecond)
		}
		m.P50, m.P99, m.Max = at(0.5), at(0.99), at(1)
	}
	if first != nil {
		m.Error = first.Error()
	}
	if m.Rounds == 0 {
		if first == nil {
			first = errors.New("not a single round came to an end in its time")
		}
		return m, first
	}
	return m, nil
}

// failurePause keeps rounds that fail at once from using up a processor.
const failurePause = 10 * time.Millisecond

// pause waits for a while, or until ctx ends, and reports which.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pinger asks nodes for a sign of life, as often as they keep up with.
type pinger struct {
	clients []redis.UniversalClient
	free    []chan struct{} // places for questions that a node has not answered
	asked   sync.WaitGroup
}

func newPinger(clients []redis.UniversalClient) *pinger {
	p := &pinger{clients: clients}
	for range clients {
		p.free = append(p.free, make(chan struct{}, crowd))
	}
	return p
}

// ping waits for the answers of a quorum of nodes: no lease can be faster than that.
func (p *pinger) ping(ctx context.Context) error {
	answers := make(chan error, len(p.clients))
	for i, client := range p.clients {
		select {
		case p.free[i] <- struct{}{}:
		default: // it hangs
			answers <- redlock.ErrNodeBusy
			continue
		}
		p.asked.Go(func() {
			err := client.Ping(ctx).Err()
			if err != nil && isRefusal(err) {
				err = nil // it has answered
			}
			<-p.free[i]
			answers <- err
		})
	}
	need := quorum.Size(len(p.clients))
	var failed []error
	for range p.clients {
		select {
		case err := <-answers:
			if err == nil {
				need--
			} else {
				failed = append(failed, err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if need == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: %w", redlock.ErrNoQuorum, errors.Join(failed...))
}
