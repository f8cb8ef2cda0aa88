package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestTheLeaderOfClientGoAndOfWhatTakesItsPlaceLeadsUntilItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(within(t, 30*time.Second))
	led := make(chan struct{})
	stopped := false
	clientGoBefore(ctx, fake.NewClientset(), "pod-0", func(ctx context.Context) {
		cancel()
		<-ctx.Done()
		close(led)
	}, func() { stopped = true })
	<-led
	require.True(t, stopped)

	ctx, cancel = context.WithCancel(within(t, 30*time.Second))
	returned := false
	require.NoError(t, clientGoAfter(ctx, lockerOn(t, redlocktest.Start(t, 3)), "pod-0",
		func(ctx context.Context, number redlock.Token) error {
			cancel()
			<-ctx.Done()
			returned = number > 0
			return nil
		}))
	require.True(t, returned, "Run returns after the leading function, never before")
}
