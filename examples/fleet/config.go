package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
)

const (
	replicas  = 3
	workers   = 10 // sellers in each replica
	products  = 10
	unitsEach = 100
	// sellingShare is the part of the run, in percent, in which all would be sold if nothing
	// went wrong.
	sellingShare = 60
)

// A config is what a replica is told by the process that starts it, in an environment variable.
type config struct {
	Replica int      // its number, from 1
	Nodes   []string // URLs
	Store   string   // URL
	Run     string   // keeps the keys of one run apart from those of others
	TTL     time.Duration
	Think   time.Duration // of a seller between two sales, on average
	Gate    bool
	Verbose bool
}

const configVariable = "QUORATE_FLEET_REPLICA"

// inherited is the config of a replica; ok is false in the parent.
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

func newRunID() string { return strings.ToLower(rand.Text()[:8]) }

// prefix stands before every key of the run.
func (c config) prefix() string { return "fleet-example:" + c.Run + ":" }

func (c config) identity() string { return fmt.Sprint("replica-", c.Replica) }

func (c config) logger() *slog.Logger {
	if c.Verbose {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})).With("replica", c.Replica)
	}
	return slog.New(slog.DiscardHandler)
}

// locker makes a Locker over the nodes. A short maximum TTL brings a node that restarted empty
// back soon.
func (c config) locker() (*redlock.Locker, func(), error) {
	var clients []redis.UniversalClient
	closeAll := func() {
		for _, client := range clients {
			_ = client.Close() // the process ends
		}
	}
	for _, url := range c.Nodes {
		client, err := connect(url)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		clients = append(clients, client)
	}
	locker, err := redlock.New(clients,
		redlock.WithTTL(c.TTL), redlock.WithMaxTTL(c.TTL), redlock.WithFenceTTL(10*time.Minute),
		redlock.WithKeyPrefix(c.prefix()), redlock.WithIdentity(c.identity()), redlock.WithLogger(c.logger()))
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return locker, func() {
		_ = locker.Close() // never fails
		closeAll()
	}, nil
}

func connect(url string) (*redis.Client, error) {
	options, err := redis.ParseURL(strings.TrimSpace(url))
	if err != nil {
		return nil, fmt.Errorf("%q is no redis:// URL: %w", url, err)
	}
	return redis.NewClient(options), nil
}
