package redisserver

import (
	"errors"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Fleet is a number of independent servers.
type Fleet []*Server

// StartFleet starts n servers at the same time, each with the same options, and returns once
// all of them answer.
func StartFleet(tb testing.TB, n int, opts ...Option) Fleet {
	tb.Helper()
	fleet := make(Fleet, n)
	errs := make([]error, n)
	var started sync.WaitGroup
	for i := range fleet {
		started.Go(func() { fleet[i], errs[i] = start(tb, buildOptions(opts)) })
	}
	started.Wait()
	if err := errors.Join(errs...); err != nil {
		tb.Fatalf("redisserver: start a fleet of %d: %v", n, err)
	}
	return fleet
}

// Clients connects to each server as [Server.Client] does: one replica's view of the fleet.
func (f Fleet) Clients(opts ...func(*redis.Options)) []redis.UniversalClient {
	clients := make([]redis.UniversalClient, len(f))
	for i, s := range f {
		clients[i] = s.Client(opts...)
	}
	return clients
}

// Links puts a link that can be cut in front of each server: what stands between one replica
// and the fleet. Another replica has links of its own.
func (f Fleet) Links() Links {
	links := make(Links, len(f))
	for i, s := range f {
		links[i] = Link{Proxy: s.Proxy(), server: s}
	}
	return links
}

// Link is a [Proxy] that knows the server behind it.
type Link struct {
	*Proxy
	server *Server
}

// Client connects through the link as [Server.Client] does without it.
func (l Link) Client(opts ...func(*redis.Options)) *redis.Client {
	through := func(o *redis.Options) { o.Addr = l.Addr() }
	return l.server.Client(append([]func(*redis.Options){through}, opts...)...)
}

// Links are one replica's links to the servers of a fleet, in the fleet's order.
type Links []Link

// Clients connects through each link.
func (l Links) Clients(opts ...func(*redis.Options)) []redis.UniversalClient {
	clients := make([]redis.UniversalClient, len(l))
	for i, link := range l {
		clients[i] = link.Client(opts...)
	}
	return clients
}

// Cut cuts all links: the replica is alone.
func (l Links) Cut() {
	for _, link := range l {
		link.Cut()
	}
}

// Heal heals all links.
func (l Links) Heal() {
	for _, link := range l {
		link.Heal()
	}
}
