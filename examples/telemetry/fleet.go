package main

import (
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock/redlocktest"
)

// A fleet is where replicas get their clients from: of nodes that are given, or of embedded ones. The data
// that is guarded is in a store of its own, which is always embedded.
type fleet struct {
	urls     []string
	embedded *redlocktest.Fleet // or nil
	store    *redlocktest.Fleet
	closers  []io.Closer
}

func newFleet(urls []string) (*fleet, error) {
	f := &fleet{urls: urls}
	var err error
	if f.store, err = redlocktest.New(1); err != nil {
		return nil, err
	}
	f.closers = append(f.closers, f.store)
	if len(urls) == 0 {
		if f.embedded, err = redlocktest.New(5); err != nil {
			f.close()
			return nil, err
		}
		f.closers = append(f.closers, f.embedded)
	}
	return f, nil
}

// clients are those of one replica.
func (f *fleet) clients(replica string) ([]redis.UniversalClient, error) {
	if f.embedded != nil {
		return f.embedded.Host(replica).Clients(), nil
	}
	clients := make([]redis.UniversalClient, 0, len(f.urls))
	for i, url := range f.urls {
		o, err := redis.ParseURL(url)
		if err != nil {
			return nil, fmt.Errorf("node %d: %w; give URLs such as redis://user:password@10.0.0.1:6379", i+1, err)
		}
		client := redis.NewClient(o)
		f.closers = append(f.closers, client)
		clients = append(clients, client)
	}
	return clients, nil
}

func (f *fleet) where() string {
	if f.embedded != nil {
		return "five embedded nodes"
	}
	return fmt.Sprintf("%d nodes", len(f.urls))
}

func (f *fleet) close() {
	for _, c := range f.closers {
		_ = c.Close() // the process ends
	}
}
