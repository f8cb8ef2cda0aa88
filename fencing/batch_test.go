package fencing_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// A record has what a Batcher's function was called with.
type record struct {
	mu      sync.Mutex
	batches [][]int
	tokens  []redlock.Token
}

func (r *record) note(token redlock.Token, items []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, items)
	r.tokens = append(r.tokens, token)
}

func newBatcher[T any](t *testing.T, g *fencing.Guard, fn fencing.BatchFunc[T], opts ...fencing.BatchOption) *fencing.Batcher[T] {
	t.Helper()
	b, err := fencing.NewBatcher(g, fn, opts...)
	require.NoError(t, err)
	return b
}

// hold has somebody else hold a resource until release is called.
func (w *world) hold(resource string) (release func()) {
	w.t.Helper()
	lease, err := w.locker("holder").Acquire(w.t.Context(), resource, redlock.WithAutoExtend(true))
	require.NoError(w.t, err)
	return func() { require.NoError(w.t, lease.Release(context.Background())) }
}

// crowd has n callers give their numbers to a Batcher, in order, and returns their errors when all have returned.
func crowd(ctx context.Context, b *fencing.Batcher[int], n int) (errs func() []error) {
	all := make([]error, n)
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() { all[i] = b.Do(ctx, "sku:42", i) })
		synctest.Wait()
	}
	return func() []error {
		done.Wait()
		return all
	}
}

func TestABatchIsOneSectionForAllWhoWaitInTheirOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var r record
		b := newBatcher(t, w.guard("a", w.gate), func(ctx context.Context, resource string, token redlock.Token, items []int) error {
			assert.Equal(t, "sku:42", resource)
			admitted, ok := fencing.TokenFrom(ctx)
			assert.True(t, ok)
			assert.Equal(t, token, admitted)
			if err := w.gate.Admit(ctx, resource, token-1); !errors.Is(err, fencing.ErrStaleToken) {
				t.Error("an older token is admitted:", err)
			}
			r.note(token, items)
			return nil
		})
		release := w.hold("sku:42")
		errs := crowd(t.Context(), b, 5)
		assert.Empty(t, r.batches)
		release()
		for _, err := range errs() {
			require.NoError(t, err)
		}
		require.Equal(t, [][]int{{0, 1, 2, 3, 4}}, r.batches)
	})
}

func TestWhileABatchIsAtWorkTheNextOneGathers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var r record
		b := newBatcher(t, w.guard("a", w.gate), func(_ context.Context, _ string, token redlock.Token, items []int) error {
			r.note(token, items)
			time.Sleep(10 * time.Millisecond)
			return nil
		}, fencing.WithMaxBatch(3))
		release := w.hold("sku:42")
		errs := crowd(t.Context(), b, 7)
		release()
		for _, err := range errs() {
			require.NoError(t, err)
		}
		require.Equal(t, [][]int{{0, 1, 2}, {3, 4, 5}, {6}}, r.batches)
		require.IsIncreasing(t, r.tokens)
	})
}

func TestOneWhoLeavesTheLineHasNothingDoneForItAndHoldsNobodyUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var r record
		b := newBatcher(t, w.guard("a", w.gate), func(_ context.Context, _ string, token redlock.Token, items []int) error {
			r.note(token, items)
			return nil
		})
		release := w.hold("sku:42")
		gone := errors.New("gone")
		ctx, leave := context.WithCancelCause(t.Context())
		first := crowd(ctx, b, 2) // the one that asks, and one behind it
		others := crowd(t.Context(), b, 3)
		leave(gone)
		for _, err := range first() {
			require.ErrorIs(t, err, gone)
		}
		release()
		for _, err := range others() {
			require.NoError(t, err)
		}
		require.Equal(t, [][]int{{0, 1, 2}}, r.batches)

		require.ErrorIs(t, b.Do(ctx, "sku:42", 7), gone)
		require.Len(t, r.batches, 1)
	})
}

func TestABatchThatHasBegunEndsForAllOfItsCallersAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		begun, finish := make(chan struct{}), make(chan struct{})
		b := newBatcher(t, w.guard("a", w.gate), func(ctx context.Context, _ string, _ redlock.Token, items []int) error {
			assert.Len(t, items, 3)
			close(begun)
			<-finish
			return ctx.Err()
		})
		release := w.hold("sku:42")
		ctx, leave := context.WithCancel(t.Context())
		impatient := crowd(ctx, b, 2)
		other := crowd(t.Context(), b, 1)
		release()
		<-begun
		leave()
		time.Sleep(time.Second) // the batch goes on for the one that still wants it
		close(finish)
		for _, err := range append(impatient(), other()...) {
			require.NoError(t, err)
		}
	})
}

func TestABatchThatNobodyWantsAnyMoreIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		begun := make(chan struct{})
		b := newBatcher(t, w.guard("a", w.gate), func(ctx context.Context, _ string, _ redlock.Token, _ []int) error {
			close(begun)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		release := w.hold("sku:42")
		gone := errors.New("gone")
		a, leaveA := context.WithCancelCause(t.Context())
		z, leaveZ := context.WithTimeoutCause(t.Context(), 10*time.Second, gone)
		defer leaveZ()
		errsA, errsZ := crowd(a, b, 1), crowd(z, b, 1)
		release()
		<-begun
		leaveA(errors.New("another cause"))
		began := time.Now()
		for _, err := range append(errsA(), errsZ()...) {
			require.ErrorIs(t, err, gone)
		}
		require.Greater(t, time.Since(began), 5*time.Second)
	})
}

func TestTheGuardsLimitsAreThoseOfItsBatches(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		guard := w.guard("a", w.gate, fencing.WithWaitLimit(3*time.Second), fencing.WithQueueLimit(2), fencing.WithHoldLimit(5*time.Second))
		b := newBatcher(t, guard, func(ctx context.Context, _ string, _ redlock.Token, items []int) error {
			if items[0] == 0 {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		release := w.hold("sku:42")
		errs := crowd(t.Context(), b, 3)
		time.Sleep(time.Second)
		err := b.Do(t.Context(), "sku:42", 3)
		require.ErrorIs(t, err, fencing.ErrQueueFull)
		var full *fencing.QueueError
		require.ErrorAs(t, err, &full)
		require.Equal(t, &fencing.QueueError{Resource: "sku:42", Waiting: 2, Limit: 2}, full)

		began := time.Now()
		for _, err := range errs() {
			require.ErrorIs(t, err, fencing.ErrWaitLimit)
			require.ErrorIs(t, err, fencing.ErrNotBegun)
		}
		require.Equal(t, 2*time.Second, time.Since(began).Round(100*time.Millisecond), "the limit of all of them was over")
		release()
		require.NoError(t, b.Do(t.Context(), "sku:42", 0))
		require.ErrorIs(t, b.Do(t.Context(), "sku:42", 1), fencing.ErrHoldLimit)
	})
}

func TestEachCallerOfABatchIsToldItsError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		failed := errors.New("disk full")
		b := newBatcher(t, w.guard("a", w.gate), func(context.Context, string, redlock.Token, []int) error { return failed })
		release := w.hold("sku:42")
		errs := crowd(t.Context(), b, 3)
		release()
		for _, err := range errs() {
			require.Equal(t, failed, err)
		}
	})
}

func TestABatchOfAPausedHolderIsRefusedAndAllAreTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := newBatcher(t, w.guard("a", w.gate), func(ctx context.Context, resource string, token redlock.Token, items []int) error {
			w.pause("a", 2*ttl)
			require.NoError(t, w.guard("b", w.gate).Do(t.Context(), resource, nothing))
			_, err := w.gate.IncrBy(context.WithoutCancel(ctx), resource, token, "{sku:42}:stock", int64(len(items)), 0)
			return err
		})
		release := w.hold("sku:42")
		errs := crowd(t.Context(), b, 3)
		release()
		for _, err := range errs() {
			require.ErrorIs(t, err, fencing.ErrStaleToken)
			require.ErrorIs(t, err, redlock.ErrLeaseExpired)
		}
		require.NotContains(t, w.store.Keys(0), "{sku:42}:stock")
	})
}

func TestAFunctionThatDoesNotReturnFailsItsBatchAndNoOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := newBatcher(t, w.guard("a", w.gate), func(_ context.Context, _ string, _ redlock.Token, items []string) error {
			switch items[0] {
			case "panics":
				panic("boom")
			case "ends":
				runtime.Goexit()
			}
			return nil
		})
		for _, how := range []string{"panics", "ends"} {
			release := w.hold("sku:42")
			var all sync.WaitGroup
			all.Go(func() {
				defer func() { _ = recover() }()
				_ = b.Do(t.Context(), "sku:42", how)
				t.Error("it has returned")
			})
			synctest.Wait()
			all.Go(func() { assert.ErrorContains(t, b.Do(t.Context(), "sku:42", "behind"), "has not returned") })
			synctest.Wait()
			release()
			all.Wait()
			require.NoError(t, b.Do(t.Context(), "sku:42", "returns"))
		}
	})
}

func TestAGateThatPanicsHoldsNoLineUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		panics := true
		b := newBatcher(t, w.guard("a", fencing.GateFunc(func(context.Context, string, redlock.Token) error {
			if panics {
				panic("boom")
			}
			return nil
		})), func(context.Context, string, redlock.Token, []int) error { return nil })
		require.PanicsWithValue(t, "boom", func() { _ = b.Do(t.Context(), "sku:42", 1) })
		panics = false
		require.NoError(t, b.Do(t.Context(), "sku:42", 2))
	})
}

func TestWhatKeepsABatchFromBeginningIsToldToAllWhoWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		begun := false
		refuse := errors.New("not today")
		b := newBatcher(t, w.guard("a", fencing.GateFunc(func(context.Context, string, redlock.Token) error {
			time.Sleep(time.Second)
			return refuse
		})), func(context.Context, string, redlock.Token, []int) error {
			begun = true
			return nil
		})
		release := w.hold("sku:42")
		errs := crowd(t.Context(), b, 20)
		release()
		released := time.Now()
		for _, err := range errs() {
			require.ErrorIs(t, err, refuse)
			require.ErrorIs(t, err, fencing.ErrNotBegun)
		}
		require.Less(t, time.Since(released), 2*time.Second, "they were told one after the other")
		require.False(t, begun)
	})
}

// Callers come and go at random. Each item is in one batch at most, and in one exactly if its
// caller was told so.
func TestAnItemIsInOneBatchOrItsCallerIsToldThatItIsInNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		rnd := rand.New(rand.NewPCG(1, 2))
		taken := map[int]int{}
		var mu sync.Mutex
		fn := func(_ context.Context, _ string, _ redlock.Token, items []int) error {
			mu.Lock()
			for _, i := range items {
				taken[i]++
			}
			mu.Unlock()
			time.Sleep(time.Duration(len(items)) * time.Millisecond)
			return nil
		}
		batchers := []*fencing.Batcher[int]{
			newBatcher(t, w.guard("a", w.gate), fn, fencing.WithMaxBatch(4)),
			newBatcher(t, w.guard("b", w.gate), fn, fencing.WithMaxBatch(4)),
		}
		const callers = 400
		errs := make([]error, callers)
		var all sync.WaitGroup
		for i := range callers {
			patience := time.Duration(rnd.IntN(100)) * time.Millisecond
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				errs[i] = batchers[i%2].Do(ctx, "sku:42", i)
			})
			time.Sleep(time.Duration(rnd.IntN(1000)) * time.Microsecond)
		}
		all.Wait()
		done := 0
		for i, err := range errs {
			if err == nil {
				done++
				require.Equal(t, 1, taken[i], "item %d", i)
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, fencing.ErrNotBegun)
				require.Zero(t, taken[i], "item %d: %v", i, err)
			}
		}
		require.Greater(t, done, callers/10)
		require.Less(t, done, callers)
	})
}

func TestFullBatchesLeaveOtherProcessesTheirTurns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		b := newBatcher(t, w.guard("a", w.gate), func(context.Context, string, redlock.Token, []int) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		}, fencing.WithMaxBatch(1))
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for ctx.Err() == nil {
					_ = b.Do(ctx, "sku:42", i)
				}
			})
		}
		other, turns := w.guard("b", w.gate), 0
		for ctx.Err() == nil {
			if other.Do(ctx, "sku:42", nothing) == nil {
				turns++
			}
		}
		all.Wait()
		require.Greater(t, turns, 200)
	})
}

func TestOneWhoHasJustComeIsNotToldThatTheLimitOfAnotherIsOver(t *testing.T) {
	for range 30 {
		inWorld(t, func(t *testing.T, w *world) {
			b := newBatcher(t, w.guard("a", w.gate, fencing.WithWaitLimit(3*time.Second)),
				func(context.Context, string, redlock.Token, []int) error { return nil })
			release := w.hold("sku:42")
			first := crowd(t.Context(), b, 1)
			time.Sleep(2 * time.Second)
			second := crowd(t.Context(), b, 1)
			time.Sleep(2500 * time.Millisecond)
			release()
			require.ErrorIs(t, first()[0], fencing.ErrWaitLimit)
			require.NoError(t, second()[0])
		})
	}
}

func TestOneWhoseWaitEndsWhileTheGateIsAskedIsToldWhy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		gate := fencing.GateFunc(func(ctx context.Context, _ string, _ redlock.Token) error {
			<-ctx.Done()
			return ctx.Err()
		})
		b := newBatcher(t, w.guard("a", gate, fencing.WithWaitLimit(time.Second)),
			func(context.Context, string, redlock.Token, []int) error { return nil })
		err := b.Do(t.Context(), "sku:42", 1)
		require.ErrorIs(t, err, fencing.ErrWaitLimit)
		require.ErrorIs(t, err, fencing.ErrNotBegun)
	})
}

func TestABatchIsTheSpanOfTheCallerWhoLeadsItLinkedToTheOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spans := tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		guard := w.guard("a", w.gate, fencing.WithTracerProvider(tracer))
		b := newBatcher(t, guard, func(context.Context, string, redlock.Token, []int) error { return nil })
		release := w.hold("sku:42")
		var callers []trace.SpanContext
		var all sync.WaitGroup
		for i := range 3 {
			ctx, span := tracer.Tracer("callers").Start(t.Context(), "caller")
			callers = append(callers, span.SpanContext())
			all.Go(func() {
				if err := b.Do(ctx, "sku:42", i); err != nil {
					t.Error(err)
				}
				span.End()
			})
			synctest.Wait()
		}
		release()
		all.Wait()
		sections := 0
		for _, s := range spans.Ended() {
			if s.Name() != "fencing.guard" {
				continue
			}
			sections++
			require.Equal(t, callers[0].SpanID(), s.Parent().SpanID())
			var linked []trace.SpanID
			for _, l := range s.Links() {
				linked = append(linked, l.SpanContext.SpanID())
			}
			require.Contains(t, linked, callers[1].SpanID())
			require.Contains(t, linked, callers[2].SpanID())
			require.NotContains(t, linked, callers[0].SpanID(), "it is inside of that")
			require.Contains(t, s.Attributes(), attribute.Int("quorate.items", 3))
		}
		require.Equal(t, 1, sections)
	})
}

func TestABatcherRefusesWhatMakesNoSense(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		g := w.guard("a", w.gate)
		fn := func(context.Context, string, redlock.Token, []int) error { return nil }
		for says, make := range map[string]func() (*fencing.Batcher[int], error){
			"the guard is nil":    func() (*fencing.Batcher[int], error) { return fencing.NewBatcher(nil, fn) },
			"the function is nil": func() (*fencing.Batcher[int], error) { return fencing.NewBatcher[int](g, nil) },
			"a nil BatchOption":   func() (*fencing.Batcher[int], error) { return fencing.NewBatcher(g, fn, nil) },
			"a batch of at most 0": func() (*fencing.Batcher[int], error) {
				return fencing.NewBatcher(g, fn, fencing.WithMaxBatch(0))
			},
		} {
			b, err := make()
			require.Nil(t, b)
			require.ErrorIs(t, err, redlock.ErrInvalidOption)
			require.ErrorContains(t, err, says)
		}
		b := newBatcher(t, g, fn)
		require.ErrorIs(t, b.Do(t.Context(), "", 1), redlock.ErrInvalidName)
		require.ErrorIs(t, b.Do(t.Context(), strings.Repeat("x", redlock.MaxNameLength+1), 1), redlock.ErrInvalidName)
	})
}
