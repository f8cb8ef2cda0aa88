package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestElectionsAreToldFromOtherNames(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		l := newLocker(t, f, "a")
		lock, err := l.Acquire(t.Context(), "a lock")
		require.NoError(t, err)
		require.NoError(t, lock.Save(t.Context(), []byte(`{"leader":"nobody"}`)))
		e := newElector(t, l, leader.WithIdentity("me"))
		ctx, cancel := context.WithCancel(t.Context())
		leads := make(chan leader.Term)
		go func() {
			_ = e.Run(ctx, func(ctx context.Context, term leader.Term) error {
				leads <- term
				<-ctx.Done()
				return nil
			})
		}()
		term := <-leads
		synctest.Wait()

		terms := func() map[string]leader.Term {
			found := map[string]leader.Term{}
			for status, err := range l.List(t.Context(), redlock.Filter{}) {
				require.NoError(t, err)
				if term, ok := leader.TermOf(status); ok {
					found[status.Name] = term
				}
			}
			return found
		}
		found := terms()
		require.Len(t, found, 1)
		require.Equal(t, "me", found[name].Leader)
		require.Equal(t, term.Number, found[name].Number)

		cancel()
		time.Sleep(time.Second)
		found = terms()
		require.Len(t, found, 1)
		require.Equal(t, leader.Term{Name: name}, found[name], "nobody leads")
	})
}
