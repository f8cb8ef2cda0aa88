package redisserver

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATLSServerSpeaksOnlyTLS(t *testing.T) {
	t.Parallel()
	server := Start(t, WithTLS())
	require.NoError(t, server.Client().Ping(t.Context()).Err())
	require.Error(t, server.Client(func(o *redis.Options) { o.TLSConfig = nil }).Ping(t.Context()).Err())
	require.Error(t, server.Client(func(o *redis.Options) { o.TLSConfig.RootCAs = nil }).Ping(t.Context()).Err(),
		"the certificate is checked")
	assert.Nil(t, Start(t).TLSConfig())
}

func TestATLSServerIsReachedThroughALinkAndRestarted(t *testing.T) {
	t.Parallel()
	fleet := StartFleet(t, 1, WithTLS())
	client := fleet.Links()[0].Client()
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())
	fleet[0].RestartEmpty()
	assert.Empty(t, fleet[0].Keys())
}

func TestAnACLBindsClientsAndLeavesThePackageItsAccess(t *testing.T) {
	t.Parallel()
	server := Start(t, WithACL("user default off", "user app on >secret ~app:* -@all +set +ping"))
	require.ErrorContains(t, server.Client().Ping(t.Context()).Err(), "NOAUTH")

	app := server.Client(func(o *redis.Options) { o.Username, o.Password = "app", "secret" })
	require.NoError(t, app.Set(t.Context(), "app:1", "v", 0).Err())
	require.ErrorContains(t, app.Set(t.Context(), "other", "v", 0).Err(), "NOPERM")
	require.ErrorContains(t, app.Get(t.Context(), "app:1").Err(), "NOPERM")
	assert.Equal(t, []string{"app:1"}, server.Keys())

	server.Restart()
	require.NoError(t, app.Set(t.Context(), "app:1", "v", 0).Err())
}

func TestAReplicaFollowsAMasterWithTLSAndACL(t *testing.T) {
	t.Parallel()
	master := Start(t, WithTLS(), WithACL("user default off"))
	replica := Start(t, WithReplicaOf(master))
	require.NotEmpty(t, replica.RunID())
}

func TestASentinelPromotesAReplicaAndClientsFollow(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{
		"plain":       nil,
		"TLS and ACL": {WithTLS(), WithACL("user default on >secret ~* &* +@all")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := Start(t, opts...)
			replica := Start(t, append([]Option{WithReplicaOf(master)}, opts...)...)
			sentinel := StartSentinel(t, master, replica)
			assert.Equal(t, master.Addr(), sentinel.MasterAddr())
			client := sentinel.Client(func(o *redis.FailoverOptions) {
				if opts != nil {
					o.Password = "secret"
				}
			})
			require.NoError(t, client.Set(t.Context(), "before", "1", 0).Err())

			master.Kill()
			sentinel.Failover()
			require.Eventually(t, func() bool {
				return client.Set(t.Context(), "after", "1", 0).Err() == nil
			}, soon, pollInterval)
			assert.Equal(t, replica.Addr(), sentinel.MasterAddr())
			assert.Contains(t, replica.Keys(), "after")
		})
	}
}
