package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
)

// ttl of the leases: a replica that dies or is frozen stops the others for at most this long.
const ttl = time.Second

// A config is what a replica is told by the process that starts it, in an environment variable.
type config struct {
	Replica  int // its number, from 1
	Way      way
	Database database
	Nodes    []string // host:port or URLs, of those that give the leases
	Run      string   // keeps the keys and tables of one run apart from those of others
	Queue    int      // how many buyers may wait in line in a replica
	FreezeAt int      // the sale, by number, in the middle of which a replica is to be frozen; 0: none
}

const configVariable = "QUORATE_INVENTORY_REPLICA"

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

func (c config) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})).With("replica", c.Replica)
}

// locker makes a Locker over the nodes, and what closes both.
func (c config) locker() (*redlock.Locker, func(), error) {
	var clients []redis.UniversalClient
	closeAll := func() {
		for _, client := range clients {
			_ = client.Close() // nothing is kept in it
		}
	}
	for _, node := range c.Nodes {
		options := &redis.Options{Addr: node}
		if strings.Contains(node, "://") {
			var err error
			if options, err = redis.ParseURL(node); err != nil {
				closeAll()
				return nil, nil, fmt.Errorf("node %q: %w", node, err)
			}
		}
		clients = append(clients, redis.NewClient(options))
	}
	locker, err := redlock.New(clients,
		redlock.WithTTL(ttl), redlock.WithKeyPrefix("inventory-example:"+c.Run+":"), redlock.WithFenceTTL(10*time.Minute),
		redlock.WithIdentity(fmt.Sprint("replica-", c.Replica)), redlock.WithLogger(c.logger()))
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return locker, func() {
		_ = locker.Close() // never fails
		closeAll()
	}, nil
}
