package scheduler

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestThoseWhoLookWaitInLineUntilFewClaimsAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l line
		for range maxAtNodes {
			require.NoError(t, l.enter(t.Context(), true))
		}
		var order []string
		come := func(name string, claim bool) {
			go func() {
				if l.enter(t.Context(), claim) == nil {
					order = append(order, name)
				}
			}()
			synctest.Wait()
		}
		come("look 1", false)
		come("claim 1", true)
		come("look 2", false)
		come("claim 2", true)
		require.Empty(t, order)
		left := 0
		leave := func(n int) {
			for range n {
				l.leave(true)
				left++
				synctest.Wait()
			}
		}
		leave(2)
		require.Equal(t, []string{"claim 1", "claim 2"}, order)
		leave(lookers - left)
		require.Equal(t, []string{"claim 1", "claim 2", "look 1"}, order, "one out of so many, come what may")
		require.Greater(t, l.claiming, fewClaims)
		leave(l.claiming - fewClaims)
		require.Equal(t, []string{"claim 1", "claim 2", "look 1", "look 2"}, order)
		leave(fewClaims)
		l.leave(false)
		l.leave(false)
		require.Zero(t, l.inside)
		require.Zero(t, l.claiming)
	})
}

func TestWhoGivesUpInTheLineTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l line
		for range maxAtNodes {
			require.NoError(t, l.enter(t.Context(), true))
		}
		for _, late := range []bool{false, true} { // late: the place comes at the moment when it is given up
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- l.enter(ctx, true) }()
			synctest.Wait()
			if late {
				l.mu.Lock()
				cancel()
				l.claiming++
				l.next(&l.claims)
				l.mu.Unlock()
			}
			cancel()
			if err := <-ended; !late || err != nil {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				l.leave(true)
			}
			require.Empty(t, l.claims)
			require.Equal(t, maxAtNodes, l.inside)
			require.Equal(t, maxAtNodes, l.claiming)
		}
	})
}
