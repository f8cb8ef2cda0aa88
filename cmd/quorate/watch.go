package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

// shortestEvery keeps a watch from being a load.
const shortestEvery = 100 * time.Millisecond

func (c *console) watchCommand() *cli.Command {
	return &cli.Command{
		Name:      "watch",
		Usage:     "tell of each change of who holds what, until it is interrupted",
		ArgsUsage: "[NAME…]",
		Description: "Tells what is held at first, and then of each change, as it sees it: acquired, released, taken over, and for elections who leads. It looks every --every, and at names that are given also when their nodes tell of news; " +
			"what came and went between two looks is missed. Without names it watches all that are held, by SCAN, for which the user of the nodes needs the right +scan. While too few nodes answer, it says so on stderr once and tells nothing. JSON is one object a line.",
		Flags: []cli.Flag{
			// --prefix is what stands before names in keys.
			&cli.StringFlag{Name: "begins", Usage: "only names that begin with `TEXT`, where none are given"},
			&cli.DurationFlag{Name: "every", Value: time.Second, Usage: "how often to look, at least 100ms"},
		},
		Action: c.watch,
	}
}

// A change is what watch tells, for programs.
type change struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	Name  string    `json:"name"`
	// Holder holds it now; Previous held it before.
	Holder   string        `json:"holder,omitempty"`
	Previous string        `json:"previous,omitempty"`
	Token    redlock.Token `json:"token,omitempty"`
	Leader   string        `json:"leader,omitempty"`
}

// Events of watch.
const (
	eventHeld      = "held" // when the watch began
	eventFree      = "free" // of a name that was given, when the watch began
	eventAcquired  = "acquired"
	eventReleased  = "released"
	eventTakenOver = "taken-over" // released and acquired between two looks
	eventLeads     = "leads"
)

// A sight is what was seen of a name.
type sight struct {
	holder string
	token  redlock.Token
	leader string
	term   redlock.Token
}

func sightOf(known redlock.Status) sight {
	s := sight{holder: known.Holder}
	if s.holder != "" {
		s.token = known.Token
	}
	if term, ok := leader.TermOf(known); ok {
		s.leader, s.term = term.Leader, term.Number
	}
	return s
}

// A watcher compares what it sees with what it saw.
type watcher struct {
	console *console
	locker  *redlock.Locker
	asJSON  bool
	names   []string // or all that begin with begins
	begins  string
	seen    map[string]sight
	looked  bool
	isBlind bool
}

func (c *console) watch(ctx context.Context, cmd *cli.Command) error {
	asJSON, err := isJSON(cmd)
	if err != nil {
		return err
	}
	every := cmd.Duration("every")
	if every < shortestEvery {
		return usagef("--every %s: at least %s", every, shortestEvery)
	}
	names := cmd.Args().Slice()
	if len(names) > 0 && cmd.IsSet("begins") {
		return usagef("watch: give names or --begins, not both")
	}
	slices.Sort(names)
	names = slices.Compact(names)
	f, err := c.openForLooking(cmd)
	if err != nil {
		return err
	}
	defer f.close()
	w := &watcher{
		console: c, locker: f.locker, asJSON: asJSON, names: names, begins: cmd.String("begins"),
		seen: map[string]sight{},
	}
	return w.run(ctx, every)
}

func (w *watcher) run(ctx context.Context, every time.Duration) error {
	news := make(chan struct{}, 1)
	for _, name := range w.names {
		watch, err := w.locker.Watch(name)
		if err != nil {
			return err
		}
		defer watch.Close()
		go func() { // ends with the Locker
			for {
				select {
				case <-watch.C:
					select {
					case news <- struct{}{}:
					default:
					}
				case <-w.locker.Done():
					return
				}
			}
		}()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-tick.C:
		case <-news:
		case <-ctx.Done():
			return nil // that is how it ends
		}
	}
}

// look sees what is held, and tells what has changed.
func (w *watcher) look(ctx context.Context) error {
	now, err := w.see(ctx)
	switch {
	case errors.Is(err, redlock.ErrNoQuorum) && ctx.Err() == nil:
		if !w.isBlind {
			w.console.say("%v; watching goes on", err)
		}
		w.isBlind = true
		return nil
	case err != nil:
		return listFailed(err)
	}
	if w.isBlind {
		w.console.say("a quorum of nodes answers again")
		w.isBlind = false
	}
	all := maps.Clone(w.seen)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := w.compare(name, w.seen[name], now[name]); err != nil {
			return err
		}
	}
	w.seen, w.looked = now, true
	return nil
}

func (w *watcher) see(ctx context.Context) (map[string]sight, error) {
	now := map[string]sight{}
	if len(w.names) == 0 {
		for known, err := range w.locker.List(ctx, redlock.Filter{Held: true, Prefix: w.begins}) {
			if err != nil {
				return nil, err
			}
			now[known.Name] = sightOf(known)
		}
		return now, nil
	}
	for _, name := range w.names {
		known, err := w.locker.Inspect(ctx, name)
		if err != nil {
			return nil, err
		}
		now[name] = sightOf(known)
	}
	return now, nil
}

// compare tells what became of a name.
func (w *watcher) compare(name string, was, is sight) error {
	c := change{Time: time.Now(), Name: name, Holder: is.holder, Token: is.token}
	switch {
	case !w.looked && is.holder != "":
		c.Event = eventHeld
	case !w.looked && len(w.names) > 0:
		c.Event = eventFree
	case was.holder == is.holder:
		// The token of a long lease may grow, and so may that of one that is handed on in a process.
	case was.holder == "":
		c.Event = eventAcquired
	case is.holder == "":
		c.Event, c.Previous, c.Token = eventReleased, was.holder, was.token
	default:
		c.Event, c.Previous = eventTakenOver, was.holder
	}
	if c.Event != "" {
		if err := w.tell(c); err != nil {
			return err
		}
	}
	if is.leader != "" && is.term != was.term {
		return w.tell(change{Time: c.Time, Event: eventLeads, Name: name, Holder: is.holder, Leader: is.leader, Token: is.term})
	}
	return nil
}

func (w *watcher) tell(c change) error {
	if w.asJSON {
		return printLine(w.console.out, c)
	}
	line := fmt.Sprintf("%s  %-10s  %s", c.Time.Format("15:04:05.000"), c.Event, printable(c.Name))
	switch c.Event {
	case eventReleased:
		line += "  by " + printable(c.Previous)
	case eventTakenOver:
		line += fmt.Sprintf("  by %s from %s  token %d", printable(c.Holder), printable(c.Previous), c.Token)
	case eventLeads:
		line += fmt.Sprintf("  %s  term %d", printable(c.Leader), c.Token)
	case eventHeld, eventAcquired:
		line += fmt.Sprintf("  by %s  token %d", printable(c.Holder), c.Token)
	}
	_, err := fmt.Fprintln(w.console.out, line)
	return err
}
