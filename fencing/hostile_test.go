package fencing_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
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

// ownGate is a gate of a user's own.
type ownGate struct{ admitted map[string]redlock.Token }

func (g *ownGate) Admit(_ context.Context, resource string, token redlock.Token) error {
	g.admitted[resource] = token
	return nil
}

func TestANilPointerToAGateOfYourOwnIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var none *ownGate
		_, err := fencing.NewGuard(w.locker("a"), none)
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorContains(t, err, "the gate is nil")
		require.NoError(t, w.guard("b", &ownGate{admitted: map[string]redlock.Token{}}).Do(t.Context(), "sku:42", nothing))
	})
}

// A field of a struct that nobody filled is nil, or a zero value.
func TestAGateThatWasNotMadeIsRefusedAndNothingWritten(t *testing.T) {
	ctx := t.Context()
	a := &answers{affected: 1}
	db := sql.OpenDB(a)
	defer db.Close()
	never := func(*sql.Tx) error {
		t.Error("was run without a gate")
		return nil
	}
	for _, gate := range []*fencing.SQLGate{nil, {}} {
		require.Nil(t, gate.On(db))
		assert.False(t, gate.Conflict(sql.ErrTxDone))
		tx, err := db.BeginTx(ctx, nil)
		require.NoError(t, err)
		for _, err := range []error{gate.Admit(ctx, tx, "sku:42", 33), gate.InTx(ctx, db, nil, "sku:42", 33, never)} {
			require.ErrorIs(t, err, redlock.ErrInvalidOption)
			require.ErrorContains(t, err, "the gate is nil or was not made; make it with NewSQLGate")
		}
		require.NoError(t, tx.Rollback())
	}
	for _, table := range []*fencing.SQLTable{nil, {}} {
		err := table.Update(ctx, db, 33, fencing.Columns{"sku": 42}, fencing.Columns{"qty": 1})
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorContains(t, err, "the table is nil or was not made; make it with NewSQLTable")
		_, _, err = table.Statement(33, fencing.Columns{"sku": 42}, fencing.Columns{"qty": 1})
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
	}
	assert.Equal(t, []string{"ROLLBACK", "ROLLBACK"}, a.said)
	for _, gate := range []*fencing.RedisGate{nil, {}} {
		for key, write := range writes(t, gate) {
			err := write("sku:42", 33)
			require.ErrorIs(t, err, redlock.ErrInvalidOption, key)
			require.ErrorContains(t, err, "the gate is nil or was not made; make it with NewRedisGate", key)
		}
		require.ErrorIs(t, gate.Admit(ctx, "sku:42", 33), redlock.ErrInvalidOption)
	}
}

func TestAResourceThatIsTooLongIsNotRepeatedInItsError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		db := sql.OpenDB(&answers{affected: 1})
		defer db.Close()
		table, err := fencing.NewSQLGate(fencing.PostgreSQL)
		require.NoError(t, err)
		for _, gate := range []fencing.Gate{w.gate, table.On(db)} {
			err := gate.Admit(t.Context(), strings.Repeat("}\x10", 1<<19), 1)
			require.ErrorIs(t, err, redlock.ErrInvalidName)
			require.Less(t, len(err.Error()), 4000)
		}
	})
}
