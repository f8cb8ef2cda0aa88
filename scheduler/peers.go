package scheduler

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

// All replicas know of a tick in the same instant, and one of them is to run it. So that they do not
// all ask for the lease, the ticks are shared out by a hash: one replica goes at once, and the others
// come a moment later and look first. No safety depends on it, and a replica may be wrong about which
// others there are: what is run is decided by the register, under the lease.

const (
	// giveWay is how long a replica leaves what is to be done to each one that goes before it: time
	// for a claim on a network that is not slow.
	giveWay = 20 * time.Millisecond
	// A replica says each announceEvery that it is there, and is forgotten after forgetAfter.
	announceEvery = time.Minute
	forgetAfter   = 3 * announceEvery
	// maxPeers bounds the bell. Those beyond it are forgotten sooner.
	maxPeers = 64
)

// A peer is a replica that has said that it is there.
type peer struct {
	ID   uint64 `json:"id"`   // hash of its identity
	Jobs uint64 `json:"jobs"` // of its jobs' names: those who have others do not share in these
	At   int64  `json:"at"`   // when it said so, in Unix milliseconds
}

// gone reports whether a peer has said nothing for a while, or its clock is off by as much.
func (p *peer) gone(now time.Time) bool {
	return now.Sub(time.UnixMilli(p.At)).Abs() > forgetAfter
}

// peers are the other replicas, as the bell tells of them.
type peers struct {
	mu    sync.Mutex
	known []peer
}

func (p *peers) told(known []peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = known
}

// before is how many of the others go first in something, by its hash.
func (p *peers) before(what, self, jobs uint64, now time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := mix(what ^ self)
	for i := range p.known {
		if o := &p.known[i]; o.ID != self && o.Jobs == jobs && mix(what^o.ID) > own && !o.gone(now) {
			n++
		}
	}
	return n
}

// hash is the same in all replicas.
func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return mix(h.Sum64())
}

// mix is the finalizer of splitmix64: each bit of the result depends on each of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// announce has the others know that this replica is there, until the session ends, and then that it
// is not.
func (s *Scheduler) announce(se *session) {
	ctx, clock := se.accepting, s.settings.clock
	for i := int64(0); ctx.Err() == nil; i++ {
		told := s.jobsHash()
		until := clock.Elapsed() + announceEvery - crontab.Jitter(s.settings.identity, time.UnixMilli(i), announceEvery/4)
		if told != 0 && s.say(ctx, told) != nil {
			until = clock.Elapsed() + look
		}
		for left := look; left > 0 && ctx.Err() == nil && s.jobsHash() == told; { // of a job that is added they know soon
			left = until - clock.Elapsed()
			_ = sleep(ctx, min(left, look))
		}
	}
	if s.jobsHash() != 0 {
		_ = s.say(context.WithoutCancel(ctx), 0) // else it is forgotten after a while
	}
}

// say puts this replica into the bell, or takes it out for jobs that are 0, and does not ring it.
func (s *Scheduler) say(ctx context.Context, jobs uint64) error {
	ctx, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	lease, err := s.locker.Acquire(ctx, bellName)
	if err != nil {
		return err
	}
	defer giveBack(lease)
	var b bell
	_ = json.Unmarshal(lease.State(), &b)
	now := s.now()
	b.Peers = slices.DeleteFunc(b.Peers, func(p peer) bool { return p.ID == s.id || p.gone(now) })
	if jobs != 0 {
		b.Peers = append(b.Peers, peer{ID: s.id, Jobs: jobs, At: now.UnixMilli()})
	}
	b.Peers = b.Peers[max(0, len(b.Peers)-maxPeers):]
	return lease.Save(ctx, b.encode())
}

// jobsHash stands for the names of the jobs.
func (s *Scheduler) jobsHash() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names
}

// encode gives the state to save. Old changes give way where names are long.
func (b *bell) encode() []byte {
	state := encode(b)
	for ; len(state) > redlock.MaxStateSize && len(b.Recent) > 0; state = encode(b) {
		b.Recent = b.Recent[1:]
	}
	return state
}
