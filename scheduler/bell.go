package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/quorate/quorate/redlock"
)

// All replicas look at one bell, and not at the control of each job: it says which of them have
// changed.

const (
	bellName = "control"
	// bellLook is how often the bell is looked at when nothing wakes the replica: what people ask
	// for is heard within a second.
	bellLook = 750 * time.Millisecond
	// bellRecent is how many changes it tells: who has missed more looks at all jobs.
	bellRecent = 32
)

// A bell is the state of its lease.
type bell struct {
	Number int64    `json:"n"`
	Recent []string `json:"recent"` // jobs whose control has changed, the last one last
	Peers  []peer   `json:"peers,omitempty"`
}

// since gives the jobs that have changed since a number was heard; all is set where that is not
// known.
func (b *bell) since(number int64) (jobs []string, all bool) {
	missed := b.Number - number
	if missed < 0 || missed > int64(len(b.Recent)) {
		return nil, true
	}
	return b.Recent[int64(len(b.Recent))-missed:], false
}

// listen hears the bell until the session ends.
func (s *Scheduler) listen(se *session) {
	ctx := se.accepting
	var heard []byte // nil is a bell that nobody has rung
	var number int64
	watch, err := s.locker.Watch(bellName)
	if err != nil {
		se.stop(err) // the Locker is closed
		return
	}
	defer watch.Close()
	for ctx.Err() == nil {
		asked := s.now().UnixMilli()
		status, err := s.locker.Inspect(ctx, bellName)
		if errors.Is(err, redlock.ErrClosed) {
			se.stop(err)
			return
		}
		if err == nil && !bytes.Equal(status.State, heard) {
			var b bell
			_ = json.Unmarshal(status.State, &b) // what cannot be read says nothing of what has changed
			s.peers.told(b.Peers)
			names, all := b.since(number)
			if s.hear(ctx, names, all) {
				heard, number = status.State, b.Number
			}
		}
		if err == nil && bytes.Equal(status.State, heard) {
			se.heard.Store(asked)
		}
		timer := time.NewTimer(bellLook)
		select {
		case <-timer.C:
		case <-watch.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// hear looks at what people ask of the jobs whose control has changed, and reports whether it
// could.
func (s *Scheduler) hear(ctx context.Context, names []string, all bool) bool {
	if all {
		s.mu.Lock()
		names = names[:0:0]
		for name := range s.jobs {
			names = append(names, name)
		}
		s.mu.Unlock()
	}
	for _, name := range names {
		j := s.job(name)
		if j == nil {
			continue
		}
		c, err := s.readControl(ctx, name)
		if errors.Is(err, ErrRegister) {
			s.settings.logger.Error("scheduler: the control of a job cannot be read", "job", name, "error", err)
			continue
		}
		if err != nil {
			return false
		}
		j.told(c)
	}
	return true
}

// ring tells all replicas that the control of a job has changed.
func (s *Scheduler) ring(ctx context.Context, name string) error {
	lease, err := s.locker.Acquire(ctx, bellName)
	if err != nil {
		return err
	}
	defer giveBack(lease)
	var b bell
	_ = json.Unmarshal(lease.State(), &b)
	b.Number++
	b.Recent = append(b.Recent, name)
	b.Recent = b.Recent[max(0, len(b.Recent)-bellRecent):]
	return lease.Publish(ctx, b.encode())
}

func giveBack(lease *redlock.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), redlock.DefaultTTL)
	defer cancel()
	_ = lease.Release(ctx) // else it ends by itself
}
