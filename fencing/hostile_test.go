package fencing_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

func TestAGateOverNoClientIsRefused(t *testing.T) {
	for _, client := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil)} {
		_, err := fencing.NewRedisGate(client)
		require.ErrorIs(t, err, redlock.ErrInvalidOption, "%T", client)
	}
}
