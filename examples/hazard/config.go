package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
)

// What is sold, and where the store keeps it. The braces put the stock into the hash slot of its
// fence, which a cluster would need.
const (
	product  = "sku:42"
	stockKey = "stock:{sku:42}"
	units    = 10
)

// A config is what a holder is told by the process that starts it, in an environment variable.
type config struct {
	Who   string   // A or B
	Nodes []string // URLs
	Store string   // URL
	TTL   time.Duration
	Gate  bool
	Pause bool // wait to be paused, between the last look at the lease and the write
}

const configVariable = "QUORATE_HAZARD_HOLDER"

// inherited is the config of a holder; ok is false in the parent.
func inherited() (cfg config, ok bool, err error) {
	text, ok := os.LookupEnv(configVariable)
	if !ok {
		return cfg, false, nil
	}
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return cfg, true, fmt.Errorf("read %s: %w", configVariable, err)
	}
	return cfg, true, nil
}

func (c config) environment() (string, error) {
	text, err := json.Marshal(c)
	return configVariable + "=" + string(text), err
}

// locker makes a Locker over the nodes. The process that calls it ends with what it opens.
func (c config) locker() (*redlock.Locker, error) {
	var clients []redis.UniversalClient
	for _, url := range c.Nodes {
		client, err := connect(url)
		if err != nil {
			return nil, err
		}
		clients = append(clients, client)
	}
	return redlock.New(clients, redlock.WithTTL(c.TTL), redlock.WithIdentity(c.Who),
		redlock.WithLogger(slog.New(slog.DiscardHandler))) // the story is told by events
}

func connect(url string) (*redis.Client, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(options), nil
}
