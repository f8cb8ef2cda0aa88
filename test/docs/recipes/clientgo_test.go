package recipes

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

func clientGoBefore(ctx context.Context, client kubernetes.Interface, pod string, lead func(context.Context), stopped func()) {
	// region clientgo-before
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "billing"},
		Client: client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{
			Identity: pod},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		ReleaseOnCancel: true,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead, // ctx ends when it is lost
			OnStoppedLeading: stopped,
		},
	})
	// endregion
}

func clientGoAfter(ctx context.Context, locker *redlock.Locker, pod string, lead func(context.Context, redlock.Token) error) error {
	// region clientgo-after
	elector, err := leader.New(locker, "billing",
		leader.WithIdentity(pod),
		leader.WithTTL(8*time.Second))
	if err != nil {
		return err
	}
	return elector.Run(ctx,
		func(ctx context.Context, term leader.Term) error {
			return lead(ctx, term.Number) // a fencing token
		})
	// endregion
}
