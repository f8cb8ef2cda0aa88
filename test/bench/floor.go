package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// floorPeer is no lock, but the least that one over several nodes costs with go-redis: each node has
// a goroutine and a client of its own; to lock is to send all of them a SET NX PX at the same time
// and to go on with the answer that makes a majority, to unlock is the same with DEL. No script, no
// fence, no check of who holds it. For one caller at a time.
type floorPeer struct {
	clients clients
	nodes   []chan func(redis.UniversalClient) error
}

func openFloor(nodes []string) *floorPeer {
	p := &floorPeer{clients: dial(nodes)}
	for _, client := range p.clients {
		// Room for the steps that a slow node still has to take, so that it holds up nobody.
		steps := make(chan func(redis.UniversalClient) error, 1024)
		p.nodes = append(p.nodes, steps)
		go func() {
			for step := range steps {
				_ = step(client)
			}
		}()
	}
	return p
}

var errNoMajority = errors.New("no majority of the nodes said yes")

// round has all nodes take a step, and returns when a majority has.
func (p *floorPeer) round(step func(redis.UniversalClient) error) error {
	answers := make(chan error, len(p.nodes))
	for _, node := range p.nodes {
		node <- func(c redis.UniversalClient) error {
			err := step(c)
			answers <- err
			return err
		}
	}
	yes, no := 0, 0
	majority := len(p.nodes)/2 + 1
	for yes < majority {
		if err := <-answers; err == nil {
			yes++
		} else if no++; no > len(p.nodes)-majority {
			return errors.Join(errNoMajority, err)
		}
	}
	return nil
}

func (p *floorPeer) lock(ctx context.Context, name string) (holding, error) {
	err := p.round(func(c redis.UniversalClient) error {
		return c.SetNX(ctx, name, "floor", 8*time.Second).Err()
	})
	return holding{unlock: func(ctx context.Context) error {
		return p.round(func(c redis.UniversalClient) error { return c.Del(ctx, name).Err() })
	}}, err
}

func (p *floorPeer) close() {
	for _, node := range p.nodes {
		close(node)
	}
	p.clients.close()
}
