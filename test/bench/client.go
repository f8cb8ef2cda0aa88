package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/test/rig"
)

// clientEnv has the configuration of a client process, as JSON. Where it is set, the binary is a
// client.
const clientEnv = "QUORATE_BENCH_CLIENT"

// clientConfig says what a client process is to do.
type clientConfig struct {
	times
	Role     role
	Library  library
	Store    kind // of a guarded update
	Nodes    []string
	Redis    string // the store's address
	Postgres string // a URL
	Workers  int
	Hold     time.Duration
	Count    int // of leases or jobs
	At       time.Time
	Held     time.Duration
}

// A role is what a client process does.
type role string

const (
	contending  role = "contending" // for the hot name
	updating    role = "updating"   // under guards
	holdingMany role = "holding"    // leases
	standing    role = "standing"   // for an election
	scheduling  role = "scheduling" // jobs
)

// A command is what the bench tells a client.
type command struct {
	Op    string `json:"op"`
	Begin int64  `json:"begin,omitempty"` // stamps
	End   int64  `json:"end,omitempty"`
}

// An event is what a client tells the bench.
type event struct {
	Kind   string             `json:"kind"`
	At     int64              `json:"at,omitempty"`
	Token  int64              `json:"token,omitempty"`
	Spells []spell            `json:"spells,omitempty"`
	Counts []int              `json:"counts,omitempty"`
	Lags   map[string][]int64 `json:"lags,omitempty"` // of a job's runs, in nanoseconds
	Figure map[string]float64 `json:"figure,omitempty"`
}

const (
	readyEvent = "ready" // it has connections, and waits for its command
	doneEvent  = "done"  // it has told everything
)

// client is one client process.
type client struct {
	clientConfig
	mu sync.Mutex
	to io.Writer
}

// runClient is the life of a client process. It ends when its work is done, and when the bench is gone.
func runClient(text string) error {
	c := &client{to: os.NewFile(3, "events")}
	if err := json.Unmarshal([]byte(text), &c.clientConfig); err != nil {
		return fmt.Errorf("read the configuration in %s: %w", clientEnv, err)
	}
	redis.SetLogger(silent{})
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	commands := make(chan command)
	go c.obey(commands)
	ctx := context.Background()
	switch c.Role {
	case contending:
		return c.contend(ctx, commands)
	case updating:
		return c.update(ctx, commands)
	case holdingMany:
		return c.holdMany(ctx, commands)
	case standing:
		return c.stand(ctx, commands)
	case scheduling:
		return c.schedule(ctx, commands)
	}
	return fmt.Errorf("no client is called %q", c.Role)
}

// obey passes on what the bench says. When that is gone, so is the process: nobody waits for what
// would be wound up.
func (c *client) obey(commands chan<- command) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var cmd command
		if err := json.Unmarshal(lines.Bytes(), &cmd); err != nil {
			break
		}
		commands <- cmd
	}
	os.Exit(1)
}

func (c *client) tell(e event) {
	if e.At == 0 {
		e.At = rig.Stamp()
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and numbers: cannot be
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Where the bench is gone this process is about to end as well.
	_, _ = c.to.Write(append(line, '\n'))
}

// until waits for a stamp.
func until(stamp int64) { pause(context.Background(), time.Duration(stamp-rig.Stamp())) }
