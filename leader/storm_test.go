package leader_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestAtMostOneLeadsAtAnyTimeUnderAnyFaults(t *testing.T) {
	for seed := range uint64(2) { // the simulation has many more
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *redlocktest.Fleet) { storm(t, f, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

// storm lets five electors on five machines lead in turn while machines, nodes and networks fail.
func storm(t *testing.T, f *redlocktest.Fleet, rnd *rand.Rand) {
	var mu sync.Mutex
	var last redlock.Token
	leading, terms := 0, 0
	hosts := []string{"a", "b", "c", "d", "e"}
	clocks := make([]*clock, len(hosts))
	electors := make([]*leader.Elector, len(hosts))
	for i, host := range hosts {
		clocks[i] = newClock()
		electors[i] = newElector(t, newLocker(t, f, host, redlock.WithClock(clocks[i]), redlock.WithTTL(ttl), redlock.WithMaxTTL(ttl)))
	}
	for i, host := range hosts {
		dice := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		start(t, electors[i], func(ctx context.Context, term leader.Term) error {
			mu.Lock()
			leading++
			terms++
			assert.Equal(t, 1, leading, "%s leads beside another", host)
			for k, e := range electors { // two overlap where the later one begins
				assert.False(t, k != i && e.IsLeader(), "%s says that it leads, in a term of %s", hosts[k], host)
			}
			assert.Greater(t, term.Number, last)
			last = term.Number
			mu.Unlock()
			defer func() {
				mu.Lock()
				leading--
				mu.Unlock()
			}()
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(dice.IntN(20)) * time.Second):
				return []error{nil, errors.New("failed")}[dice.IntN(2)]
			}
			var over *redlock.LeaseError
			if !errors.As(context.Cause(ctx), &over) { // the lease lasts: take some time
				select {
				case <-time.After(time.Duration(dice.IntN(1000)) * time.Millisecond):
				case <-leaseOf(ctx).Done():
				}
			}
			return nil
		})
	}

	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(23 * time.Millisecond):
			}
			var who []string
			for i, e := range electors {
				if e.IsLeader() {
					who = append(who, hosts[i])
				}
			}
			if len(who) > 1 {
				t.Errorf("%v lead at one time", who)
			}
		}
	})

	for range 200 {
		i, k := rnd.IntN(f.Len()), rnd.IntN(len(hosts))
		host := f.Host(hosts[k])
		[]func(){
			func() { f.Stop(i) },
			func() { f.Restart(i) },
			func() { f.Restart(i) },
			func() { f.RestartEmpty(i) },
			func() { f.Hang(i) },
			func() { f.Resume(i) },
			func() { f.Delay(i, time.Duration(rnd.IntN(100))*time.Millisecond) },
			func() { host.Partition(i) },
			func() { host.Partition() },
			func() { host.Heal() },
			func() { host.Heal() },
			func() { go func() { _ = electors[k].Resign(t.Context()) }() },
			func() { clocks[k].sleep(time.Duration(rnd.IntN(2000)) * time.Millisecond) }, // its time runs ahead: the safe side
		}[rnd.IntN(13)]()
		time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
	}

	for i := range f.Len() {
		f.Restart(i)
		f.Delay(i, 0)
	}
	for _, host := range hosts {
		f.Host(host).Heal()
	}
	led := func() int {
		mu.Lock()
		defer mu.Unlock()
		return terms
	}
	before, calm := led(), time.Now()
	for led() <= before+5 && time.Since(calm) < 2*time.Minute {
		time.Sleep(time.Second)
	}
	close(stop)
	watch.Wait()
	assert.Greater(t, before, 5, "the faults left some room for terms")
	assert.Greater(t, led(), before+5, "and afterwards all is well")
}

// leaseOf is the context of the lease under a term.
func leaseOf(ctx context.Context) context.Context {
	lease, _ := redlock.LeaseFrom(ctx)
	return lease.Context()
}
