package dashboard_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// A deny is a client's hook that answers SCAN as a server does whose user has no right to it: the embedded
// nodes have no rules of access.
type deny struct{}

func (deny) DialHook(next redis.DialHook) redis.DialHook { return next }
func (deny) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (deny) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "scan" {
			err := errors.New("NOPERM User service has no permissions to run the 'scan' command")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func TestWhereListingIsRefusedThePageSaysSoAndShowsTheRest(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		clients := f.Clients()
		for _, c := range clients {
			c.AddHook(deny{})
		}
		locker, err := redlock.New(clients, redlock.WithClock(redlocktest.NewClock()), redlock.WithLogger(quiet))
		require.NoError(t, err)
		defer locker.Close()
		elector, err := leader.New(locker, "billing", leader.WithLogger(quiet))
		require.NoError(t, err)
		h := newBoard(t, locker, dashboard.WithElectors(elector))
		defer h.Close()
		_, _ = campaign(t, newLocker(t, f, "b"), "billing")
		p := look(t, h)
		settle()
		synctest.Wait()
		told := p.fleet()["names"].(map[string]any)
		require.Equal(t, true, told["refused"])
		require.Contains(t, told["err"], "NOPERM")
		require.Equal(t, "ok", p.fleet()["state"])
		require.Len(t, p.rows("nodes"), 3)
		require.Equal(t, true, p.row("elections", "billing")["leading"])
	})
}
