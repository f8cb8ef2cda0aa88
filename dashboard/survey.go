package dashboard

import (
	"context"
	"sync"
	"time"
)

// restraint is how many times as long as a listing took the nodes are left alone before the next: listing
// goes through all their keys, and should not be what they do.
const restraint = 4

// survey asks the fleet until nobody looks any more. There is one at a time. Nodes are asked apart from
// names, so that their health is known in time however long a listing takes.
func (h *Handler) survey(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() {
		for h.rest(ctx, h.nodes.begun, h.settings.interval, nil) {
			h.lookAtNodes(ctx)
		}
	})
	parts.Go(func() {
		for h.rest(ctx, h.names.begun, max(h.settings.interval, restraint*h.names.took), h.kick) {
			h.lookAtNames(ctx)
		}
	})
	parts.Wait()
}

// rest waits until d has passed since begun, or somebody asks for haste, and reports whether there is
// still reason to go on. So pages that are opened and closed all the time do not have the fleet asked more often.
func (h *Handler) rest(ctx context.Context, begun time.Time, d time.Duration, haste <-chan struct{}) bool {
	timer := time.NewTimer(d - time.Since(begun))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-haste:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// hurry has the names looked at now.
func (h *Handler) hurry() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}
