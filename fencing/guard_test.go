package fencing_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func nothing(context.Context, redlock.Token) error { return nil }

func TestTokensGrowFromOneGuardedSectionToTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.guard("a", w.gate), w.guard("b", w.gate)
		var last redlock.Token
		for range 5 {
			for _, g := range []*fencing.Guard{a, b} {
				err := g.Do(t.Context(), "sku:42", func(_ context.Context, token redlock.Token) error {
					assert.Greater(t, token, last)
					last = token
					return nil
				})
				require.NoError(t, err)
			}
		}
	})
}

func TestTheTokenIsInTheContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		err := w.guard("a", w.gate).Do(ctx, "sku:42", func(ctx context.Context, token redlock.Token) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			got, ok := fencing.TokenFrom(ctx)
			assert.True(t, ok)
			assert.Equal(t, token, got)
			assert.Equal(t, "value", ctx.Value(key{}), "the caller's values are there too")
			return nil
		})
		require.NoError(t, err)
		_, ok := fencing.TokenFrom(t.Context())
		assert.False(t, ok)
	})
}

func TestOlderTokensAreShutOutBeforeTheFunctionStarts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		err := w.guard("a", w.gate).Do(t.Context(), "sku:42", func(ctx context.Context, token redlock.Token) error {
			require.ErrorIs(t, w.gate.Admit(ctx, "sku:42", token-1), fencing.ErrStaleToken)
			return w.gate.Admit(ctx, "sku:42", token)
		})
		require.NoError(t, err)
	})
}

func TestWithoutAdmissionTheFirstWriteAdmits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		guard := w.guard("a", w.gate, fencing.WithoutAdmission())
		err := guard.Do(t.Context(), "sku:42", func(ctx context.Context, token redlock.Token) error {
			require.NoError(t, w.gate.Admit(ctx, "sku:42", token-1), "an older token still passes")
			_, err := w.gate.IncrBy(ctx, "sku:42", token, "{sku:42}:stock", 1, 0)
			require.NoError(t, err)
			require.ErrorIs(t, w.gate.Admit(ctx, "sku:42", token-1), fencing.ErrStaleToken)
			return nil
		})
		require.NoError(t, err)
	})
}

func TestTheFunctionsErrorIsReturned(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		declined := errors.New("card declined")
		g := w.guard("a", w.gate)
		err := g.Do(t.Context(), "sku:42", func(context.Context, redlock.Token) error { return declined })
		require.ErrorIs(t, err, declined)
		require.EqualError(t, err, "card declined", "the lease lasted")
		require.NoError(t, g.Do(t.Context(), "sku:42", nothing), "and the resource is free")
	})
}

func TestTheLossOfTheLeaseIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		g := w.guard("a", w.gate)
		for _, own := range []error{nil, errors.New("card declined")} {
			err := g.Do(t.Context(), "sku:42", func(ctx context.Context, _ redlock.Token) error {
				w.locks.Partition()
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), redlock.ErrLeaseExpired)
				w.locks.Heal()
				return own
			})
			require.ErrorIs(t, err, redlock.ErrLeaseExpired)
			if own != nil {
				require.ErrorIs(t, err, own)
			}
		}
	})
}

func TestAPanicFreesTheResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.guard("a", w.gate), w.guard("b", w.gate)
		require.PanicsWithValue(t, "boom", func() {
			_ = a.Do(t.Context(), "sku:42", func(context.Context, redlock.Token) error { panic("boom") })
		})
		before := time.Now()
		require.NoError(t, b.Do(t.Context(), "sku:42", nothing))
		assert.Less(t, time.Since(before), ttl/2)
	})
}

func TestWaitingEndsAtItsLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, hasty := w.guard("a", w.gate), w.guard("b", w.gate, fencing.WithWaitLimit(time.Second))
		err := a.Do(t.Context(), "sku:42", func(context.Context, redlock.Token) error {
			before := time.Now()
			err := hasty.Do(t.Context(), "sku:42", func(context.Context, redlock.Token) error {
				t.Error("run without the lease")
				return nil
			})
			assert.Equal(t, time.Second, time.Since(before))
			require.ErrorIs(t, err, fencing.ErrWaitLimit)
			require.ErrorContains(t, err, "wait limit reached after 1s")
			require.ErrorIs(t, err, redlock.ErrTaken, "it says what it waited for")
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, hasty.Do(t.Context(), "sku:42", func(ctx context.Context, _ redlock.Token) error {
			time.Sleep(10 * ttl) // the limit is on the waiting only
			return ctx.Err()
		}))
	})
}

func TestTheCallersContextEndsTheWaitingAndTheWork(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.guard("a", w.gate), w.guard("b", w.gate)
		gone := errors.New("client has gone")
		err := a.Do(t.Context(), "sku:42", func(context.Context, redlock.Token) error {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(gone) })
			return b.Do(ctx, "sku:42", nothing)
		})
		require.ErrorIs(t, err, gone)

		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		err = a.Do(ctx, "sku:42", func(ctx context.Context, _ redlock.Token) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, gone)
	})
}

func TestAtTheHoldLimitTheContextEndsWhileTheLeaseStillCovers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		g := w.guard("a", w.gate, fencing.WithHoldLimit(5*time.Second))
		windDown := func(own error) error {
			return g.Do(t.Context(), "sku:42", func(ctx context.Context, token redlock.Token) error {
				before := time.Now()
				<-ctx.Done()
				assert.Equal(t, 5*time.Second, time.Since(before))
				require.ErrorIs(t, context.Cause(ctx), fencing.ErrHoldLimit)
				time.Sleep(ttl / 4)
				lease, ok := redlock.LeaseFrom(ctx)
				require.True(t, ok)
				require.NoError(t, lease.Err())
				require.NoError(t, w.gate.Set(context.WithoutCancel(ctx), "sku:42", token, "stock", 1, 0))
				return own
			})
		}
		require.NoError(t, windDown(nil), "it was covered to the end")
		err := windDown(context.Canceled)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, fencing.ErrHoldLimit, "the error says why the context ended")
	})
}

func TestAFunctionThatIgnoresTheHoldLimitIsShutOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const limit = 5 * time.Second
		a, b := w.guard("a", w.gate, fencing.WithHoldLimit(limit)), w.guard("b", w.gate)
		inside, over := make(chan struct{}), make(chan error)
		var late error
		go func() {
			over <- a.Do(t.Context(), "sku:42", func(ctx context.Context, token redlock.Token) error {
				close(inside)
				time.Sleep(10 * limit)
				late = w.gate.Set(context.WithoutCancel(ctx), "sku:42", token, "stock", 1, 0)
				return nil
			})
		}()
		<-inside
		before := time.Now()
		require.NoError(t, b.Do(t.Context(), "sku:42", nothing))
		assert.GreaterOrEqual(t, time.Since(before), limit)
		assert.LessOrEqual(t, time.Since(before), limit+ttl+100*time.Millisecond)
		require.ErrorIs(t, <-over, fencing.ErrHoldLimit, "also where the function returned nil")
		require.ErrorIs(t, late, fencing.ErrStaleToken)
	})
}

func TestWithoutAHoldLimitTheLeaseIsExtendedOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		g := w.guard("a", w.gate, fencing.WithHoldLimit(0))
		require.NoError(t, g.Do(t.Context(), "sku:42", func(ctx context.Context, _ redlock.Token) error {
			time.Sleep(2 * fencing.DefaultHoldLimit)
			return ctx.Err()
		}))
	})
}

func TestOptionsOfTheLeaseAreUsed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		g := w.guard("a", w.gate, fencing.WithLease(redlock.WithTTL(500*time.Millisecond), redlock.WithMaxExtensions(0)))
		err := g.Do(t.Context(), "sku:42", func(ctx context.Context, _ redlock.Token) error {
			before := time.Now()
			<-ctx.Done()
			assert.Less(t, time.Since(before), 500*time.Millisecond)
			return nil
		})
		require.ErrorIs(t, err, redlock.ErrExtensionLimit)
	})
}

func TestTheContextsErrLooksAtTheClock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		clock := redlocktest.NewClock()
		g, err := fencing.NewGuard(w.locker("a", redlock.WithClock(clock)), w.gate)
		require.NoError(t, err)
		err = g.Do(t.Context(), "sku:42", func(ctx context.Context, _ redlock.Token) error {
			require.NoError(t, ctx.Err())
			clock.Suspend(ttl)
			require.Error(t, ctx.Err())
			require.ErrorIs(t, context.Cause(ctx), redlock.ErrLeaseExpired)
			return nil
		})
		require.ErrorIs(t, err, redlock.ErrLeaseExpired)
	})
}

func TestWhereTheGateDoesNotAdmitTheFunctionIsNotRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		unreachable := errors.New("store is down")
		run := func(context.Context, redlock.Token) error {
			t.Error("was run")
			return nil
		}
		down := w.guard("a", fencing.GateFunc(func(context.Context, string, redlock.Token) error { return unreachable }))
		err := down.Do(t.Context(), "sku:42", run)
		require.ErrorIs(t, err, unreachable)
		require.ErrorContains(t, err, `guard "sku:42": not admitted`)

		require.NoError(t, w.gate.Admit(t.Context(), "sku:42", 1<<52))
		err = w.guard("b", w.gate).Do(t.Context(), "sku:42", run)
		require.ErrorIs(t, err, fencing.ErrStaleToken, "the lock nodes have lost their fences, and their clock")

		slow := w.guard("c", fencing.GateFunc(func(ctx context.Context, _ string, _ redlock.Token) error {
			w.locks.Partition()
			<-ctx.Done()
			w.locks.Heal()
			return nil
		}))
		err = slow.Do(t.Context(), "sku:42", run)
		require.ErrorIs(t, err, redlock.ErrLeaseExpired)
		require.ErrorContains(t, err, "not begun")
	})
}

func TestBadInputOfAGuard(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		guard := func(gate fencing.Gate, opts ...fencing.GuardOption) (*fencing.Guard, error) {
			return fencing.NewGuard(w.locker("a"), gate, opts...)
		}
		for says, make := range map[string]func() (*fencing.Guard, error){
			"the locker is nil":          func() (*fencing.Guard, error) { return fencing.NewGuard(nil, w.gate) },
			"the gate is nil":            func() (*fencing.Guard, error) { return guard(nil) },
			"gate is nil":                func() (*fencing.Guard, error) { return guard((*fencing.RedisGate)(nil)) },
			"gate is nil; a":             func() (*fencing.Guard, error) { return guard(fencing.GateFunc(nil)) },
			"a nil GuardOption":          func() (*fencing.Guard, error) { return guard(w.gate, nil) },
			"a nil LeaseOption":          func() (*fencing.Guard, error) { return guard(w.gate, fencing.WithLease(nil)) },
			"wait limit -1s is negative": func() (*fencing.Guard, error) { return guard(w.gate, fencing.WithWaitLimit(-time.Second)) },
			"hold limit -1s is negative": func() (*fencing.Guard, error) { return guard(w.gate, fencing.WithHoldLimit(-time.Second)) },
			"queue limit -1 is negative": func() (*fencing.Guard, error) { return guard(w.gate, fencing.WithQueueLimit(-1)) },
		} {
			g, err := make()
			require.Nil(t, g)
			require.ErrorIs(t, err, redlock.ErrInvalidOption)
			require.ErrorContains(t, err, says)
		}

		g := w.guard("b", w.gate)
		require.ErrorIs(t, g.Do(t.Context(), "sku:42", nil), redlock.ErrInvalidOption)
		require.ErrorIs(t, g.Do(t.Context(), "", nothing), redlock.ErrInvalidName)
		require.ErrorIs(t, g.Do(t.Context(), strings.Repeat("x", redlock.MaxNameLength+1), nothing), redlock.ErrInvalidName)
		for i := range w.locks.Len() {
			assert.Empty(t, w.locks.Keys(i))
		}
		assert.Empty(t, w.store.Keys(0))
	})
}
