package fencing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/redlock"
)

// A BatchFunc does to a resource what the items ask for, in one guarded section, with one token: in
// one transaction, or one write through the gate. The items are in the order in which they came, and
// there is at least one. What there is to tell of a single item goes into the item, for which T is a pointer.
//
// The context ends as that of Guard.Do, but with no single caller's: when the contexts of all callers whose items are
// in the batch have ended, it does too.
type BatchFunc[T any] func(ctx context.Context, resource string, token redlock.Token, items []T) error

// A Batcher does in one guarded section what many callers of this process want done to one
// resource: what databases call group commit. While a batch is at work the next one gathers, so
// the busier a resource is the larger its batches are, and one whose turn it is alone does not wait for others.
// Other processes have their turns in between, as with a Guard.
//
// It is safe for use by many goroutines and for many resources, and holds nothing that needs closing.
type Batcher[T any] struct {
	guard *Guard
	fn    BatchFunc[T]
	max   int
	sizes metric.Int64Histogram

	mu sync.Mutex
	// lines has those who wait for a resource, by resource; none that nobody waits for. The first of a line asks the
	// guard, for all.
	lines map[string][]*batchMember[T]
}

// A batchMember is a caller of Do.
type batchMember[T any] struct {
	ctx  context.Context
	item T
	err  error
	// turn is told true when the member has become the first of its line, and false when its batch is over.
	turn chan bool
}

// errNotReturned is what those are told whose batch, or gate, panics in the goroutine of another.
var errNotReturned = errors.New("what ran for all has not returned, but panicked or ended its goroutine")

// NewBatcher makes a Batcher of a guard, whose limits it has: WithWaitLimit counts for each caller, up to
// the begin of its batch, WithQueueLimit for the line of each resource, WithHoldLimit for each batch. The error wraps
// redlock.ErrInvalidOption.
func NewBatcher[T any](guard *Guard, fn BatchFunc[T], opts ...BatchOption) (*Batcher[T], error) {
	s, err := newBatchSettings(opts)
	switch {
	case err != nil:
		return nil, err
	case guard == nil:
		return nil, fmt.Errorf("fencing: batcher: %w: the guard is nil; make one with NewGuard", redlock.ErrInvalidOption)
	case fn == nil:
		return nil, fmt.Errorf("fencing: batcher: %w: the function is nil; give what is to be done with a batch", redlock.ErrInvalidOption)
	}
	sizes, err := newBatchSizes(guard.settings.meters)
	if err != nil {
		return nil, fmt.Errorf("fencing: create metrics: %w", err)
	}
	return &Batcher[T]{guard: guard, fn: fn, max: s.max, sizes: sizes, lines: map[string][]*batchMember[T]{}}, nil
}

// Do has the item done to the resource, in one batch with those of others, and returns when that
// batch is over, with what Guard.Do returns for it: the function's error, and that of the lease if it ended
// early. Each caller of a batch gets the same error.
//
// While the item waits, the end of ctx takes it out of the line: then nothing was done for it, and
// the error wraps ErrNotBegun and the cause. Once its batch has begun Do waits for the end of that, whatever becomes of
// ctx, so that a caller always knows, and an item that is a pointer is never written to behind its back.
// What keeps a batch from beginning, such as redlock.ErrNoQuorum, is told to all who wait at that moment,
// with ErrNotBegun.
func (b *Batcher[T]) Do(ctx context.Context, resource string, item T) error {
	if err := b.guard.locker.Validate(resource, b.guard.settings.lease...); err != nil {
		return fmt.Errorf("fencing: batch: %w", err)
	}
	if ctx.Err() != nil {
		return b.notBegun(resource, context.Cause(ctx))
	}
	waiting, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	defer b.guard.limitWait(giveUp)()
	me := &batchMember[T]{ctx: ctx, item: item, turn: make(chan bool, 1)}
	first, err := b.join(resource, me)
	if err != nil {
		return b.notBegun(resource, err)
	}
	if !first {
		select {
		case first = <-me.turn:
		case <-waiting.Done():
			if b.leave(resource, me) {
				return b.notBegun(resource, context.Cause(waiting))
			}
			first = <-me.turn
		}
	}
	if first {
		b.lead(waiting, resource, me)
	}
	return me.err
}

func (b *Batcher[T]) notBegun(resource string, cause error) error {
	return fmt.Errorf("fencing: batch %q: %w: %w", resource, ErrNotBegun, cause)
}

// join joins the line for a resource, and reports whether nobody was in it.
func (b *Batcher[T]) join(resource string, me *batchMember[T]) (first bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := b.lines[resource]
	if behind, limit := len(line)-1, b.guard.settings.queueLimit; limit > 0 && behind >= limit {
		return false, &QueueError{Resource: resource, Waiting: behind, Limit: limit}
	}
	b.lines[resource] = append(line, me)
	return len(line) == 0, nil
}

// leave leaves the line, unless a batch has taken the member out of it already.
func (b *Batcher[T]) leave(resource string, me *batchMember[T]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := b.lines[resource]
	i := slices.Index(line, me)
	if i < 0 {
		return false
	}
	b.lines[resource] = slices.Delete(line, i, i+1)
	if i == 0 {
		b.next(resource)
	}
	return true
}

// take takes the first n out of the line. The first of the others, if any, leads from now on.
func (b *Batcher[T]) take(resource string, n int) []*batchMember[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := b.lines[resource]
	n = min(n, len(line))
	batch := line[:n:n]
	b.lines[resource] = line[n:]
	b.next(resource)
	return batch
}

// next tells the first of a line that it is. The caller holds mu.
func (b *Batcher[T]) next(resource string) {
	if line := b.lines[resource]; len(line) > 0 {
		line[0].turn <- true
	} else {
		delete(b.lines, resource)
	}
}

// lead has a batch done, of which the first of the line is one. It asks for the resource while the batch before is
// still at work.
func (b *Batcher[T]) lead(waiting context.Context, resource string, me *batchMember[T]) {
	var batch []*batchMember[T]
	err, returned := errNotReturned, false
	defer func() {
		if cause := context.Cause(waiting); batch == nil && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err) // the gate does not know why its context has ended
		}
		switch {
		case batch != nil && !returned:
			err = fmt.Errorf("fencing: batch %q: %w; what it has written may be there", resource, err)
		case batch == nil:
			err = b.notBegun(resource, err)
			if waiting.Err() != nil && b.leave(resource, me) {
				me.err = err
				return
			}
			batch = b.take(resource, math.MaxInt)
		}
		for _, m := range batch {
			m.err = err
			if m != me {
				m.turn <- false
			}
		}
	}()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(waiting))
	defer cancel(nil)
	begin := context.AfterFunc(waiting, func() { cancel(context.Cause(waiting)) })
	defer begin()
	err = b.guard.run(ctx, &call{resources: []string{resource}, under: b.guard.wait, limited: true, fn: one(resource, func(ctx context.Context, token redlock.Token) error {
		if !begin() { // given up at the last moment
			return context.Cause(waiting)
		}
		batch = b.take(resource, b.max)
		defer b.whileWanted(batch, cancel)()
		b.observe(ctx, batch)
		items := make([]T, 0, len(batch))
		for _, m := range batch {
			items = append(items, m.item)
		}
		return b.fn(ctx, resource, token, items)
	})})
	returned = true
}

// whileWanted calls cancel when the contexts of all members have ended, unless it is stopped before.
func (b *Batcher[T]) whileWanted(batch []*batchMember[T], cancel context.CancelCauseFunc) (stop func()) {
	var wanted atomic.Int64
	wanted.Store(int64(len(batch)))
	stops := make([]func() bool, 0, len(batch))
	for _, m := range batch {
		stops = append(stops, context.AfterFunc(m.ctx, func() {
			if wanted.Add(-1) == 0 {
				cancel(context.Cause(m.ctx))
			}
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// observe takes note of a batch, in the span of the section, which is that of the caller who leads it.
func (b *Batcher[T]) observe(ctx context.Context, batch []*batchMember[T]) {
	b.sizes.Record(ctx, int64(len(batch)))
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(attrItems.Int(len(batch)))
	for _, m := range batch[1:] {
		if of := trace.SpanContextFromContext(m.ctx); of.IsValid() {
			span.AddLink(trace.Link{SpanContext: of})
		}
	}
}
