package gocronlock

import (
	"context"
	"fmt"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorate/quorate/redlock"
)

// A Leadership knows whether this process leads. *leader.Elector does.
type Leadership interface {
	// IsLeader reports whether this process leads as of now, by the clock and without asking
	// anybody.
	IsLeader() bool
}

// An Elector is a gocron.Elector, for gocron.WithDistributedElector.
type Elector struct{ leadership Leadership }

var _ gocron.Elector = (*Elector)(nil)

// NewElector makes an Elector. Somebody has to campaign, with leader.Elector.Run, in every
// replica. The error is redlock.ErrInvalidOption.
func NewElector(l Leadership) (*Elector, error) {
	if l == nil {
		return nil, fmt.Errorf("gocronlock: %w: the Leadership is nil; give a leader.Elector", redlock.ErrInvalidOption)
	}
	return &Elector{l}, nil
}

// IsLeader returns nil if this process leads and gocron may run a job, ErrNotLeader otherwise.
func (e *Elector) IsLeader(context.Context) error {
	if !e.leadership.IsLeader() {
		return fmt.Errorf("gocronlock: %w", ErrNotLeader)
	}
	return nil
}
