package main

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// A shop is what the replicas of a test share: a database and the nodes.
type shop struct {
	t     *testing.T
	db    *sql.DB
	store *store
	fleet *redlocktest.Fleet
}

func newShop(t *testing.T, units int) *shop {
	t.Helper()
	db, _, err := openSQLite(filepath.Join(t.TempDir(), "stock.db"))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	store, err := newStore(db, fencing.SQLite)
	require.NoError(t, err)
	require.NoError(t, store.create(t.Context(), product, units))
	return &shop{t: t, db: db, store: store, fleet: redlocktest.Start(t, 3)}
}

// locker is that of one more replica. No machine is so busy that its leases run out.
func (s *shop) locker() *redlock.Locker {
	s.t.Helper()
	locker, err := redlock.New(s.fleet.Clients(), redlock.WithNodeTimeout(redlock.DefaultTTL/2), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { locker.Close() })
	return locker
}

func (s *shop) seller(w way, queue int) seller {
	s.t.Helper()
	seller, err := newSeller(w, s.store, s.locker(), queue)
	require.NoError(s.t, err)
	return seller
}

// requireSold checks what the database has of it.
func (s *shop) requireSold(ordered, left int) {
	s.t.Helper()
	n, err := s.store.ordered(s.t.Context(), product)
	require.NoError(s.t, err)
	require.Equal(s.t, ordered, n, "ordered")
	n, err = s.store.left(context.Background(), s.db, product)
	require.NoError(s.t, err)
	require.Equal(s.t, left, n, "left")
}

// buyOne is the decision of a buyer who wants one unit.
func buyOne(left int) (int, error) {
	if left < 1 {
		return 0, errSoldOut
	}
	return 1, nil
}
