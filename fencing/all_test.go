package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

func nothingAtAll(context.Context, fencing.Tokens) error { return nil }

// dropped deletes the lock of a resource on all nodes, as an operator's mistake would, and puts a
// stranger's in its place.
func (w *world) dropped(resource string) {
	w.t.Helper()
	for _, client := range w.locks.Clients() {
		require.NoError(w.t, client.Set(context.Background(), redlock.DefaultKeyPrefix+resource, "stranger", ttl).Err())
	}
}

func TestAllResourcesAreHeldWhileTheFunctionRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.guard("a", w.gate), w.guard("b", w.gate)
		err := a.DoAll(t.Context(), []string{"y", "x", "z"}, func(ctx context.Context, tokens fencing.Tokens) error {
			require.Len(t, tokens, 3)
			for resource, token := range tokens {
				require.ErrorIs(t, b.TryDo(t.Context(), resource, nothing), redlock.ErrTaken)
				require.ErrorIs(t, w.gate.Admit(ctx, resource, token-1), fencing.ErrStaleToken, "older tokens are shut out")
				require.NoError(t, w.gate.Admit(ctx, resource, token))
			}
			time.Sleep(5 * ttl)
			return ctx.Err()
		})
		require.NoError(t, err)
		require.NoError(t, b.DoAll(t.Context(), []string{"z", "x", "y"}, nothingAtAll), "and free after it")
	})
}

func TestAllOrNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, hasty, b := w.guard("a", w.gate), w.guard("b", w.gate, fencing.WithWaitLimit(time.Second)), w.guard("c", w.gate)
		run := func(context.Context, fencing.Tokens) error {
			t.Error("was run")
			return nil
		}
		require.NoError(t, a.Do(t.Context(), "y", func(context.Context, redlock.Token) error {
			before := time.Now()
			err := hasty.DoAll(t.Context(), []string{"x", "y"}, run)
			require.ErrorIs(t, err, fencing.ErrWaitLimit)
			require.ErrorIs(t, err, redlock.ErrTaken)
			assert.Equal(t, time.Second, time.Since(before), "one limit for all")
			synctest.Wait()
			return b.TryDo(t.Context(), "x", nothing)
		}), "what was held already is free again")

		require.NoError(t, w.gate.Admit(t.Context(), "y", 1<<52))
		err := a.DoAll(t.Context(), []string{"x", "y"}, run)
		require.ErrorIs(t, err, fencing.ErrStaleToken)
		require.ErrorContains(t, err, `guard "y": not admitted`)
	})
}

func TestCallsForSeveralResourcesNeverWaitInACircle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		resources := []string{"a", "b", "c", "d", "e"}
		var inside [5]atomic.Int32
		var done atomic.Int32
		var workers sync.WaitGroup
		for host := range 4 {
			guard := w.guard(fmt.Sprint(host), w.gate)
			for worker := range 4 {
				random := rand.New(rand.NewPCG(uint64(host), uint64(worker)))
				workers.Go(func() {
					for range 10 {
						wanted := random.Perm(len(resources))[:1+random.IntN(3)]
						var names []string
						for _, i := range wanted {
							names = append(names, resources[i])
						}
						err := guard.DoAll(t.Context(), names, func(context.Context, fencing.Tokens) error {
							for _, i := range wanted {
								assert.EqualValues(t, 1, inside[i].Add(1), "two hold %s", resources[i])
							}
							time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
							for _, i := range wanted {
								inside[i].Add(-1)
							}
							return nil
						})
						if assert.NoError(t, err) {
							done.Add(1)
						}
					}
				})
			}
		}
		workers.Wait()
		assert.EqualValues(t, 160, done.Load())
	})
}

func TestTheEndOfOneLeaseEndsTheWork(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, lost := range []string{"x", "y", "z"} {
			err := w.guard("on "+lost, w.gate).DoAll(t.Context(), []string{"x", "y", "z"}, func(ctx context.Context, tokens fencing.Tokens) error {
				w.dropped(lost)
				<-ctx.Done()
				var over *redlock.LeaseError
				require.ErrorAs(t, context.Cause(ctx), &over)
				assert.Equal(t, lost, over.Name)
				assert.Equal(t, tokens[lost], over.Token)
				return nil
			})
			require.ErrorIs(t, err, redlock.ErrLeaseLost, "also where the function returned nil")
			time.Sleep(ttl)
		}
	})
}

func TestTheLossOfALeaseEndsTheWaitingForTheOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.guard("a", w.gate), w.guard("b", w.gate)
		inside, over := make(chan struct{}), make(chan error)
		go func() {
			over <- a.Do(t.Context(), "y", func(ctx context.Context, _ redlock.Token) error {
				close(inside)
				time.Sleep(10 * ttl)
				return ctx.Err()
			})
		}()
		<-inside
		before := time.Now()
		time.AfterFunc(ttl, func() { w.dropped("x") })
		err := b.DoAll(t.Context(), []string{"x", "y"}, func(context.Context, fencing.Tokens) error {
			t.Error("was run without x")
			return nil
		})
		require.ErrorIs(t, err, redlock.ErrLeaseLost)
		assert.Less(t, time.Since(before), 3*ttl)
		require.NoError(t, <-over)
	})
}

func TestTheHoldLimitOfSeveralResourcesIsOneForAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const limit = 5 * time.Second
		a, b := w.guard("a", w.gate, fencing.WithHoldLimit(limit)), w.guard("b", w.gate)
		inside, over := make(chan struct{}), make(chan error)
		var cause, late error
		go func() {
			over <- a.DoAll(t.Context(), []string{"x", "y"}, func(ctx context.Context, tokens fencing.Tokens) error {
				before := time.Now()
				close(inside)
				<-ctx.Done()
				assert.Equal(t, limit, time.Since(before))
				cause = context.Cause(ctx)
				time.Sleep(10 * limit)
				late = w.gate.Set(context.WithoutCancel(ctx), "x", tokens["x"], "stock", 1, 0)
				return nil
			})
		}()
		<-inside
		before := time.Now()
		require.NoError(t, b.DoAll(t.Context(), []string{"y", "x"}, nothingAtAll))
		assert.LessOrEqual(t, time.Since(before), limit+ttl+100*time.Millisecond)
		require.ErrorIs(t, <-over, fencing.ErrHoldLimit)
		require.ErrorIs(t, cause, fencing.ErrHoldLimit)
		require.ErrorIs(t, late, fencing.ErrStaleToken)
	})
}

func TestAPanicFreesAllResources(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.guard("a", w.gate, fencing.WithQueueLimit(1)), w.guard("b", w.gate)
		for range 3 {
			require.PanicsWithValue(t, "boom", func() {
				_ = a.DoAll(t.Context(), []string{"x", "y"}, func(context.Context, fencing.Tokens) error { panic("boom") })
			})
			require.PanicsWithValue(t, "boom", func() {
				_ = a.TryDo(t.Context(), "x", func(context.Context, redlock.Token) error { panic("boom") })
			})
		}
		synctest.Wait() // until the releases are on all nodes
		require.NoError(t, b.TryDo(t.Context(), "x", nothing))
		require.NoError(t, b.TryDo(t.Context(), "y", nothing))
	})
}

func TestBadInputOfACallForSeveral(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		g := w.guard("a", w.gate)
		require.ErrorContains(t, g.DoAll(t.Context(), nil, nothingAtAll), "there are no resources")
		require.ErrorIs(t, g.DoAll(t.Context(), []string{}, nothingAtAll), redlock.ErrInvalidOption)
		err := g.DoAll(t.Context(), []string{"x", "y", "x"}, nothingAtAll)
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorContains(t, err, `guard "x"`)
		require.ErrorContains(t, err, "named twice")
		require.ErrorIs(t, g.DoAll(t.Context(), []string{"x"}, nil), redlock.ErrInvalidOption)
		require.ErrorIs(t, g.DoAll(t.Context(), []string{"x", ""}, nothingAtAll), redlock.ErrInvalidName)
		require.ErrorIs(t, g.TryDo(t.Context(), "x", nil), redlock.ErrInvalidOption)
		require.ErrorIs(t, g.TryDo(t.Context(), "", nothing), redlock.ErrInvalidName)
		for i := range w.locks.Len() {
			assert.Empty(t, w.locks.Keys(i))
		}
		assert.Empty(t, w.store.Keys(0))

		given := []string{"z", "x"}
		require.NoError(t, g.DoAll(t.Context(), given, nothingAtAll))
		assert.Equal(t, []string{"z", "x"}, given, "the caller's list is left as it is")
	})
}

func TestTryDoDoesNotWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.guard("a", w.gate), w.guard("b", w.gate)
		err := a.TryDo(t.Context(), "sku:42", func(ctx context.Context, token redlock.Token) error {
			for _, other := range []*fencing.Guard{a, b} {
				before := time.Now()
				err := other.TryDo(t.Context(), "sku:42", func(context.Context, redlock.Token) error {
					t.Error("run without the lease")
					return nil
				})
				require.ErrorIs(t, err, redlock.ErrTaken)
				assert.Less(t, time.Since(before), 10*time.Millisecond)
			}
			got, ok := fencing.TokenFrom(ctx)
			assert.True(t, ok)
			assert.Equal(t, token, got)
			require.ErrorIs(t, w.gate.Admit(ctx, "sku:42", token-1), fencing.ErrStaleToken)
			time.Sleep(5 * ttl)
			return ctx.Err()
		})
		require.NoError(t, err, "the lease is extended as in Do")
		synctest.Wait() // until the release is on all nodes
		require.NoError(t, b.TryDo(t.Context(), "sku:42", nothing))
	})
}

func TestTryDoEndsWithTheCallersContextAndTellsOfALoss(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.guard("a", w.gate)
		gone := errors.New("client has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		err := a.TryDo(ctx, "sku:42", func(ctx context.Context, _ redlock.Token) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, gone)

		limited, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		err = a.TryDo(limited, "sku:42", func(ctx context.Context, _ redlock.Token) error {
			deadline, ok := ctx.Deadline()
			assert.True(t, ok)
			want, _ := limited.Deadline()
			assert.Equal(t, want, deadline)
			<-ctx.Done()
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)

		err = a.TryDo(t.Context(), "sku:42", func(ctx context.Context, _ redlock.Token) error {
			w.locks.Partition()
			<-ctx.Done()
			w.locks.Heal()
			return nil
		})
		require.ErrorIs(t, err, redlock.ErrLeaseExpired)
	})
}

func TestAFullQueueIsToldAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.guard("a", w.gate, fencing.WithQueueLimit(2))
		var workers sync.WaitGroup
		var ran atomic.Int32
		err := a.Do(t.Context(), "sku:42", func(context.Context, redlock.Token) error {
			for range 2 {
				workers.Go(func() {
					assert.NoError(t, a.Do(t.Context(), "sku:42", func(context.Context, redlock.Token) error {
						ran.Add(1)
						return nil
					}))
				})
			}
			synctest.Wait()
			before := time.Now()
			err := a.Do(t.Context(), "sku:42", nothing)
			assert.Zero(t, time.Since(before))
			require.ErrorIs(t, err, fencing.ErrQueueFull)
			var full *fencing.QueueError
			require.ErrorAs(t, err, &full)
			assert.Equal(t, fencing.QueueError{Resource: "sku:42", Waiting: 2, Limit: 2}, *full)

			err = a.DoAll(t.Context(), []string{"sku:1", "sku:42"}, nothingAtAll)
			require.ErrorIs(t, err, fencing.ErrQueueFull, "no place in any line without one in all")
			require.ErrorIs(t, a.TryDo(t.Context(), "sku:42", nothing), redlock.ErrTaken, "who does not wait makes no line longer")
			return a.Do(t.Context(), "sku:43", nothing)
		})
		require.NoError(t, err)
		workers.Wait()
		assert.EqualValues(t, 2, ran.Load())
		require.NoError(t, a.DoAll(t.Context(), []string{"sku:1", "sku:42"}, nothingAtAll), "the line is short again")
	})
}

func TestTheTokenOfAResourceIsFoundFromDeepInside(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, locker := w.guard("a", w.gate), w.locker("b")
		has := func(ctx context.Context, resource string, want redlock.Token) {
			t.Helper()
			got, ok := fencing.TokenFor(ctx, resource)
			assert.True(t, ok, resource)
			assert.Equal(t, want, got, resource)
		}
		hasNot := func(_ redlock.Token, ok bool) {
			t.Helper()
			assert.False(t, ok)
		}
		hasNot(fencing.TokenFor(t.Context(), "x"))
		err := a.DoAll(t.Context(), []string{"x", "y"}, func(ctx context.Context, tokens fencing.Tokens) error {
			x, y := tokens["x"], tokens["y"]
			tokens["x"] = 0 // the function's own copy
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			has(ctx, "x", x)
			has(ctx, "y", y)
			hasNot(fencing.TokenFor(ctx, "z"))
			hasNot(fencing.TokenFrom(ctx)) // which of the two?
			if err := a.Do(ctx, "z", func(ctx context.Context, z redlock.Token) error {
				has(ctx, "x", x)
				has(ctx, "z", z)
				got, ok := fencing.TokenFrom(ctx)
				assert.True(t, ok)
				assert.Equal(t, z, got)
				return nil
			}); err != nil {
				return err
			}
			return locker.Do(ctx, "q", func(ctx context.Context, lease *redlock.Lease) error {
				has(ctx, "x", x)
				has(ctx, "q", lease.Token())
				got, ok := fencing.TokenFrom(ctx)
				assert.True(t, ok, "a lease that is further in counts")
				assert.Equal(t, lease.Token(), got)
				return nil
			})
		})
		require.NoError(t, err)
		require.NoError(t, a.DoAll(t.Context(), []string{"x"}, func(ctx context.Context, tokens fencing.Tokens) error {
			got, ok := fencing.TokenFrom(ctx)
			assert.True(t, ok, "of one resource there is one")
			assert.Equal(t, tokens["x"], got)
			return nil
		}))
	})
}

func TestTheContextOfSeveralLooksAtTheClock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		g := w.guard("a", w.gate)
		err := g.DoAll(t.Context(), []string{"x", "y"}, func(ctx context.Context, _ fencing.Tokens) error {
			require.NoError(t, ctx.Err())
			w.dropped("x")
			w.dropped("y")
			time.Sleep(ttl)
			require.Error(t, ctx.Err())
			return nil
		})
		require.ErrorIs(t, err, redlock.ErrLeaseLost)
	})
}
