package main

import (
	"context"
	"errors"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// class is the condition of an error, for counting.
func class(err error) string {
	if err == nil {
		return ""
	}
	for _, c := range []struct {
		is   error
		name string
	}{
		// Why waiting ended comes last: what the last attempt found says more.
		{redlock.ErrStaleToken, "stale token"},
		{fencing.ErrBelowFloor, "below floor"},
		{redlock.ErrLeaseLost, "lost"},
		{redlock.ErrLeaseExpired, "expired"},
		{redlock.ErrExtensionLimit, "extension limit"},
		{redlock.ErrReleased, "released"},
		{redlock.ErrQuarantined, "quarantined"},
		{redlock.ErrNoQuorum, "no quorum"},
		{redlock.ErrNoValidity, "no validity"},
		{redlock.ErrTaken, "taken"},
		{redlock.ErrClosed, "closed"},
		{errForgotten, "forgotten"},
		{errPeerTaken, "taken"},
		{errPeerLost, "lost"},
		{context.DeadlineExceeded, "deadline"},
		{context.Canceled, "cancelled"},
	} {
		if errors.Is(err, c.is) {
			return c.name
		}
	}
	return "other: " + err.Error()
}
