package gates

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

func TestOlderTokensAreRefused(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		require.NoError(t, d.admit("sku:42", 34))
		require.NoError(t, d.admit("sku:42", 34), "the holder's next write")
		var stale *fencing.StaleError
		require.ErrorAs(t, d.admit("sku:42", 33), &stale)
		assert.Equal(t, fencing.StaleError{Resource: "sku:42", Token: 33, Seen: 34}, *stale)
		require.NoError(t, d.admit("sku:42", 1<<53-1))
		require.ErrorIs(t, d.admit("sku:42", 1<<53-2), fencing.ErrStaleToken)
		require.NoError(t, d.admit("sku:43", 1), "another resource is another matter")
	})
}

func TestResourcesAreComparedByteByByte(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		names := []string{"sku", "SKU", "sku ", " sku", "skü", "sku\x01", "sku\n", "'; DROP TABLE fences; --", `"`, "`", `\`, "%", "日本", strings.Repeat("x", redlock.MaxNameLength), strings.Repeat("x", redlock.MaxNameLength-1)}
		for i, name := range names {
			require.NoError(t, d.admit(name, redlock.Token(100-i)), "%q", name)
		}
		assert.EqualValues(t, len(names), d.int("SELECT count(*) FROM "+d.fences))
		for i, name := range names {
			require.ErrorIs(t, d.admit(name, redlock.Token(99-i)), fencing.ErrStaleToken, "%q", name)
			require.NoError(t, d.admit(name, redlock.Token(100-i)), "%q", name)
		}
		for _, name := range []string{"", "a\x00", "a\xff", strings.Repeat("x", redlock.MaxNameLength+1)} {
			require.ErrorIs(t, d.admit(name, 1), redlock.ErrInvalidName, "%q", name)
		}
	})
}

func TestATransactionThatIsRolledBackHasAdmittedNothing(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		require.NoError(t, d.admit("sku:42", 33))
		tx := d.begin(nil)
		require.NoError(t, d.gate.Admit(t.Context(), tx, "sku:42", 34))
		require.NoError(t, tx.Rollback())
		require.NoError(t, d.admit("sku:42", 33))
		declined := errors.New("declined")
		require.ErrorIs(t, d.gate.InTx(t.Context(), d.db, nil, "sku:42", 34, func(*sql.Tx) error { return declined }), declined)
		require.NoError(t, d.admit("sku:42", 33))
		require.PanicsWithValue(t, "boom", func() {
			_ = d.gate.InTx(t.Context(), d.db, nil, "sku:42", 34, func(*sql.Tx) error { panic("boom") })
		})
		require.NoError(t, d.admit("sku:42", 33))
	})
}

// The writes of an older holder come before the admission of a newer one, or not at all.
func TestANewerHolderWaitsForTheTransactionOfAnOlderOne(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		d.exec("CREATE TABLE " + d.data + " (id int PRIMARY KEY, qty int)")
		d.exec("INSERT INTO " + d.data + " VALUES (1, 10)")
		older := d.begin(nil)
		require.NoError(t, d.gate.Admit(t.Context(), older, "sku:42", 33))
		_, err := older.Exec("UPDATE " + d.data + " SET qty = qty - 1 WHERE id = 1")
		require.NoError(t, err)

		var committed atomic.Bool
		begun, admitted := make(chan struct{}), make(chan error)
		go func() {
			admitted <- func() error {
				tx, err := d.db.BeginTx(context.Background(), nil)
				if !d.immediate() {
					close(begun)
				}
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				if err := d.gate.Admit(context.Background(), tx, "sku:42", 34); err != nil {
					return err
				}
				assert.True(t, committed.Load(), "admitted beside the older holder's transaction")
				var qty int
				if err := tx.QueryRow("SELECT qty FROM " + d.data + " WHERE id = 1").Scan(&qty); err != nil {
					return err
				}
				assert.Equal(t, 9, qty, "what it reads is the older holder's last word")
				return tx.Commit()
			}()
		}()
		if !d.immediate() {
			<-begun
		}
		for range 50 { // time enough for an admission that does not wait
			require.NoError(t, older.QueryRow("SELECT count(*) FROM "+d.data).Scan(new(int)))
		}
		committed.Store(true)
		require.NoError(t, older.Commit())
		require.NoError(t, <-admitted)
		require.ErrorIs(t, d.admit("sku:42", 33), fencing.ErrStaleToken)
	})
}

// immediate tells of the setting in which already the begin of a transaction waits for others.
func (d *database) immediate() bool {
	return strings.Contains(d.t.Name(), "immediate")
}

func TestWhatIsWrongIsToldWithWhatToDo(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		ctx := t.Context()
		missing, err := fencing.NewSQLGate(d.dialect, fencing.WithTable("nowhere"))
		require.NoError(t, err)
		err = missing.On(d.db).Admit(ctx, "sku:42", 33)
		require.ErrorIs(t, err, fencing.ErrNoTable)
		require.ErrorContains(t, err, missing.DDL())

		tx := d.begin(nil)
		require.NoError(t, tx.Commit())
		err = d.gate.Admit(ctx, tx, "sku:42", 33)
		require.ErrorIs(t, err, sql.ErrTxDone)
		require.ErrorContains(t, err, "call Admit before Commit and Rollback")

		tx = d.begin(nil)
		for _, token := range []redlock.Token{0, -1, 1 << 53} {
			require.ErrorIs(t, d.gate.Admit(ctx, tx, "sku:42", token), fencing.ErrInvalidToken)
		}
		require.ErrorIs(t, d.gate.Admit(ctx, nil, "sku:42", 33), redlock.ErrInvalidOption)
		require.NoError(t, tx.Commit())
		assert.Zero(t, d.int("SELECT count(*) FROM "+d.fences), "nothing was written")

		gone, cancel := context.WithCancelCause(ctx)
		why := errors.New("client has gone")
		cancel(why)
		tx = d.begin(nil)
		require.Error(t, d.gate.Admit(gone, tx, "sku:42", 33))
		require.NoError(t, tx.Rollback())
		require.NoError(t, d.admit("sku:42", 1))
	})
}

// What fails before the admission fails before the caller's function, and leaves nothing behind: no row, no
// fence, and no open transaction, which would stand in the way of the writes at the end.
func TestNothingIsWrittenWithoutAnAdmission(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		d.exec("CREATE TABLE " + d.data + " (id int PRIMARY KEY)")
		missing, err := fencing.NewSQLGate(d.dialect, fencing.WithTable("nowhere"))
		require.NoError(t, err)
		closed, err := sql.Open("sqlite", "file::memory:")
		require.NoError(t, err)
		require.NoError(t, closed.Close())
		hungUp := errors.New("the client hung up")
		over, cancel := context.WithCancelCause(t.Context())
		cancel(hungUp)
		for name, c := range map[string]struct {
			gate     *fencing.SQLGate
			db       *sql.DB
			ctx      context.Context
			resource string
			token    redlock.Token
			want     error
		}{
			"no table":         {missing, d.db, t.Context(), "sku:42", 33, fencing.ErrNoTable},
			"no token":         {d.gate, d.db, t.Context(), "sku:42", 0, fencing.ErrInvalidToken},
			"a negative token": {d.gate, d.db, t.Context(), "sku:42", -1, fencing.ErrInvalidToken},
			"no resource":      {d.gate, d.db, t.Context(), "", 33, redlock.ErrInvalidName},
			"no database":      {d.gate, nil, t.Context(), "sku:42", 33, redlock.ErrInvalidOption},
			"a closed one":     {d.gate, closed, t.Context(), "sku:42", 33, nil},
			"no time left":     {d.gate, d.db, over, "sku:42", 33, hungUp},
		} {
			err := c.gate.InTx(c.ctx, c.db, nil, c.resource, c.token, func(tx *sql.Tx) error {
				t.Error("was run: " + name)
				return nil
			})
			require.Error(t, err, name)
			if c.want != nil {
				require.ErrorIs(t, err, c.want, name)
			}
			require.ErrorContains(t, err, "fencing: ", name)
		}
		for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
			tx := d.begin(nil)
			require.NoError(t, end(tx))
			require.ErrorIs(t, d.gate.Admit(t.Context(), tx, "sku:42", 33), sql.ErrTxDone)
		}
		assert.Zero(t, d.int("SELECT count(*) FROM "+d.fences))
		require.NoError(t, d.gate.InTx(t.Context(), d.db, nil, "sku:42", 1, func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO " + d.data + " VALUES (1)")
			return err
		}))
		assert.EqualValues(t, 1, d.int("SELECT count(*) FROM "+d.data))
	})
}

func TestHostileIdentifiersAreNamesAndNothingElse(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		for _, name := range []string{"a b", `a"b`, "a`b", "a'b", "a; DROP TABLE " + d.fences, "a--", "a/*b", "select", "Ä", `a\`, "a)b", "a$1?"} {
			gate, err := fencing.NewSQLGate(d.dialect, fencing.WithTable(name))
			require.NoError(t, err)
			d.exec(gate.DDL())
			require.NoError(t, gate.On(d.db).Admit(t.Context(), "sku:42", 34), name)
			require.ErrorIs(t, gate.On(d.db).Admit(t.Context(), "sku:42", 33), fencing.ErrStaleToken, name)
			if d.dialect == fencing.PostgreSQL {
				d.exec(`DROP TABLE "` + strings.ReplaceAll(name, `"`, `""`) + `"`)
			} else {
				d.exec("DROP TABLE `" + strings.ReplaceAll(name, "`", "``") + "`")
			}
		}
		assert.Zero(t, d.int("SELECT count(*) FROM "+d.fences))
	})
}

func TestATableMayHaveASchema(t *testing.T) {
	d := postgres(t)
	d.exec("CREATE SCHEMA app")
	gate, err := fencing.NewSQLGate(d.dialect, fencing.WithTable("app.fences"))
	require.NoError(t, err)
	d.exec(gate.DDL())
	require.NoError(t, gate.On(d.db).Admit(t.Context(), "sku:42", 34))
	assert.EqualValues(t, 34, d.int("SELECT token FROM app.fences"))
}
