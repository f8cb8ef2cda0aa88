package gates

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
)

var isolated = &sql.TxOptions{Isolation: sql.LevelRepeatableRead}

// A snapshot that is too old to see the fence is no stale token: the holder may be the newest.
func TestASerializationFailureIsAConflictAndNoStaleToken(t *testing.T) {
	for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			d := postgres(t)
			require.NoError(t, d.admit("sku:42", 33))
			for _, token := range []int{33, 34, 35, 36} { // whatever it would be once it is run again
				name := fmt.Sprint("sku:", token)
				tx := d.begin(&sql.TxOptions{Isolation: level})
				require.NoError(t, tx.QueryRow("SELECT count(*) FROM "+d.fences).Scan(new(int)), "takes the snapshot")
				require.NoError(t, d.admit("sku:42", 35))
				require.NoError(t, d.admit(name, 35), "a row that the snapshot does not have")
				for _, resource := range []string{"sku:42", name} {
					_, err := tx.Exec("SAVEPOINT before")
					require.NoError(t, err)
					err = d.gate.Admit(t.Context(), tx, resource, 36)
					require.ErrorIs(t, err, fencing.ErrTxConflict, "%s", resource)
					require.NotErrorIs(t, err, fencing.ErrStaleToken)
					require.ErrorContains(t, err, "run the transaction again")
					assert.True(t, d.gate.Conflict(err))
					_, err = tx.Exec("ROLLBACK TO SAVEPOINT before")
					require.NoError(t, err)
				}
				require.NoError(t, tx.Rollback())
				d.exec("UPDATE " + d.fences + " SET token = 33 WHERE resource = 'sku:42'")
			}
		})
	}
}

// MariaDB reads snapshots, but writes and locks rows as they are: an admission sees the newest fence.
func TestAnOldSnapshotDoesNotHideTheFence(t *testing.T) {
	d := mariadb(t, "")
	require.NoError(t, d.admit("sku:42", 33))
	tx := d.begin(isolated)
	require.NoError(t, tx.QueryRow("SELECT count(*) FROM "+d.fences).Scan(new(int)), "takes the snapshot")
	require.NoError(t, d.admit("sku:42", 35))
	require.ErrorIs(t, d.gate.Admit(t.Context(), tx, "sku:42", 34), fencing.ErrStaleToken)
	require.NoError(t, d.gate.Admit(t.Context(), tx, "sku:42", 36))
}

func TestADeadlockIsAConflict(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *database{
		"PostgreSQL": postgres,
		"MariaDB":    func(t *testing.T) *database { return mariadb(t, "") },
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			require.NoError(t, d.admit("x", 1))
			require.NoError(t, d.admit("y", 1))
			ctx := context.Background()
			first, second := d.begin(nil), d.begin(nil)
			require.NoError(t, d.gate.Admit(ctx, first, "x", 2))
			require.NoError(t, d.gate.Admit(ctx, second, "y", 2))
			errs := make(chan error, 2)
			for tx, resource := range map[*sql.Tx]string{first: "y", second: "x"} {
				go func() {
					err := d.gate.Admit(ctx, tx, resource, 2)
					_ = tx.Rollback()
					errs <- err
				}()
			}
			var failed int
			for range 2 {
				if err := <-errs; err != nil {
					failed++
					require.ErrorIs(t, err, fencing.ErrTxConflict)
				}
			}
			assert.Equal(t, 1, failed, "one of them goes on")
		})
	}
}

func TestAWaitForALockThatEndsIsAConflict(t *testing.T) {
	for name, patience := range map[string]string{"PostgreSQL": "SET LOCAL lock_timeout = '50ms'", "MariaDB": "SET innodb_lock_wait_timeout = 1"} {
		t.Run(name, func(t *testing.T) {
			var d *database
			if name == "MariaDB" {
				d = mariadb(t, "")
			} else {
				d = postgres(t)
			}
			holder := d.begin(nil)
			require.NoError(t, d.gate.Admit(t.Context(), holder, "sku:42", 33))
			hasty := d.begin(nil)
			_, err := hasty.Exec(patience)
			require.NoError(t, err)
			require.ErrorIs(t, d.gate.Admit(t.Context(), hasty, "sku:42", 34), fencing.ErrTxConflict)
		})
	}
}

func TestABusySQLiteIsAConflict(t *testing.T) {
	d := sqlite(t, "")
	require.NoError(t, d.admit("sku:42", 33))
	holder := d.begin(nil)
	require.NoError(t, d.gate.Admit(t.Context(), holder, "sku:42", 34))
	busy := d.begin(nil)
	require.ErrorIs(t, d.gate.Admit(t.Context(), busy, "sku:42", 35), fencing.ErrTxConflict, "SQLITE_BUSY")
	require.NoError(t, busy.Rollback())
	require.NoError(t, holder.Commit())

	late := d.begin(nil)
	require.NoError(t, late.QueryRow("SELECT count(*) FROM "+d.fences).Scan(new(int)), "takes the snapshot")
	require.NoError(t, d.admit("sku:42", 35))
	err := d.gate.Admit(t.Context(), late, "sku:42", 34)
	require.ErrorIs(t, err, fencing.ErrTxConflict, "SQLITE_BUSY_SNAPSHOT")
	require.NotErrorIs(t, err, fencing.ErrStaleToken)
}

func TestATransactionThatConflictsIsRunAgainAndNotForEver(t *testing.T) {
	d := postgres(t)
	require.NoError(t, d.admit("sku:42", 33))
	runs := 0
	clash := func(until int) func(*sql.Tx) error {
		runs = 0
		return func(tx *sql.Tx) error {
			if runs++; runs > until {
				return nil
			}
			_, err := tx.Exec("DO $$ BEGIN RAISE EXCEPTION 'clash' USING ERRCODE = '40001'; END $$")
			return err
		}
	}
	require.NoError(t, d.gate.InTx(t.Context(), d.db, isolated, "sku:42", 34, clash(3)))
	assert.Equal(t, 4, runs)
	assert.EqualValues(t, 34, d.int("SELECT token FROM "+d.fences))

	err := d.gate.InTx(t.Context(), d.db, isolated, "sku:42", 35, clash(1000))
	require.ErrorIs(t, err, fencing.ErrTxConflict)
	assert.Equal(t, 10, runs)
	assert.EqualValues(t, 34, d.int("SELECT token FROM "+d.fences))

	ctx, cancel := context.WithCancel(t.Context())
	err = d.gate.InTx(ctx, d.db, isolated, "sku:42", 35, func(tx *sql.Tx) error {
		_, err := tx.Exec("DO $$ BEGIN RAISE EXCEPTION 'clash' USING ERRCODE = '40001'; END $$")
		cancel()
		return err
	})
	require.ErrorIs(t, err, context.Canceled)
}

// At this level PostgreSQL may find out only when it commits.
func TestAConflictAtCommitIsRunAgain(t *testing.T) {
	d := postgres(t)
	d.exec("CREATE TABLE " + d.data + " (id int PRIMARY KEY, qty int)")
	d.exec("INSERT INTO " + d.data + " VALUES (1, 1), (2, 1)")
	serializable := &sql.TxOptions{Isolation: sql.LevelSerializable}
	runs := 0
	// Write skew: each reads the row that the other writes.
	err := d.gate.InTx(t.Context(), d.db, serializable, "sku:1", 34, func(tx *sql.Tx) error {
		runs++
		var qty int
		if err := tx.QueryRow("SELECT qty FROM " + d.data + " WHERE id = 2").Scan(&qty); err != nil {
			return err
		}
		if runs == 1 {
			other := d.begin(serializable)
			require.NoError(t, other.QueryRow("SELECT qty FROM "+d.data+" WHERE id = 1").Scan(new(int)))
			_, err := other.Exec("UPDATE " + d.data + " SET qty = 7 WHERE id = 2")
			require.NoError(t, err)
			require.NoError(t, other.Commit())
		}
		_, err := tx.Exec("UPDATE "+d.data+" SET qty = $1 WHERE id = 1", qty)
		return err
	})
	require.NoError(t, err)
	assert.Equal(t, 2, runs)
	assert.EqualValues(t, 7, d.int("SELECT qty FROM "+d.data+" WHERE id = 1"))
}

func TestAFileThatIsNoDatabaseIsNoConflict(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "no", "such", "dir"))
	require.NoError(t, err)
	defer db.Close()
	gate, err := fencing.NewSQLGate(fencing.SQLite)
	require.NoError(t, err)
	err = gate.On(db).Admit(t.Context(), "sku:42", 33)
	require.Error(t, err)
	require.NotErrorIs(t, err, fencing.ErrTxConflict)
	require.NotErrorIs(t, err, fencing.ErrStaleToken)
}
