package gates

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// stock makes a table with a row for sku 42, and adds the fence to it.
func (d *database) stock() *fencing.SQLTable {
	d.t.Helper()
	d.exec("CREATE TABLE " + d.data + " (sku int PRIMARY KEY, qty int NOT NULL, shelf varchar(20))")
	d.exec("INSERT INTO " + d.data + " (sku, qty) VALUES (42, 10), (43, 10)")
	table, err := fencing.NewSQLTable(d.dialect, d.data)
	require.NoError(d.t, err)
	d.exec(table.DDL())
	return table
}

var sku42 = fencing.Columns{"sku": 42}

func TestAnUpdateWithAnOlderTokenChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		stock := d.stock()
		ctx := t.Context()
		require.NoError(t, stock.Update(ctx, d.db, 34, sku42, fencing.Columns{"qty": fencing.Add(-1), "shelf": "a'b"}))
		require.NoError(t, stock.Update(ctx, d.db, 34, sku42, fencing.Columns{"qty": fencing.Add(-1)}))
		var stale *fencing.StaleError
		require.ErrorAs(t, stock.Update(ctx, d.db, 33, sku42, fencing.Columns{"qty": 100}), &stale)
		assert.Equal(t, fencing.StaleError{Resource: d.data + ` sku="42"`, Token: 33, Seen: 34}, *stale)
		assert.EqualValues(t, 8, d.int("SELECT qty FROM "+d.data+" WHERE sku = 42"))
		assert.EqualValues(t, 10, d.int("SELECT qty FROM "+d.data+" WHERE sku = 43"))
		assert.EqualValues(t, 34, d.int("SELECT fence FROM "+d.data+" WHERE sku = 42"))

		tx := d.begin(nil)
		require.ErrorIs(t, stock.Update(ctx, tx, 33, sku42, fencing.Columns{"qty": 100}), fencing.ErrStaleToken)
		require.NoError(t, stock.Update(ctx, tx, 35, sku42, fencing.Columns{"qty": 7, "shelf": nil}))
		require.NoError(t, tx.Commit())
		assert.EqualValues(t, 7, d.int("SELECT qty FROM "+d.data+" WHERE sku = 42"))
		require.ErrorIs(t, stock.Update(ctx, tx, 35, sku42, fencing.Columns{"qty": 1}), sql.ErrTxDone)
	})
}

// MySQL counts no row that is as it was.
func TestAnUpdateThatChangesNothingIsNoStaleToken(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		stock := d.stock()
		for range 3 {
			require.NoError(t, stock.Update(t.Context(), d.db, 34, sku42, fencing.Columns{"qty": 5}))
		}
		tx := d.begin(nil)
		require.NoError(t, stock.Update(t.Context(), tx, 34, sku42, fencing.Columns{"qty": 5}))
		require.NoError(t, tx.Rollback())
	})
}

func TestARowThatIsNotThereIsToldFromAStaleToken(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		err := d.stock().Update(t.Context(), d.db, 34, fencing.Columns{"sku": 44}, fencing.Columns{"qty": 5})
		require.ErrorIs(t, err, fencing.ErrNoRow)
		require.NotErrorIs(t, err, fencing.ErrStaleToken)
		require.ErrorContains(t, err, "with key sku")
	})
}

func TestWhatIsWrongWithATableIsTold(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		stock := d.stock()
		ctx := t.Context()
		nowhere, err := fencing.NewSQLTable(d.dialect, "nowhere")
		require.NoError(t, err)
		require.ErrorIs(t, nowhere.Update(ctx, d.db, 34, sku42, fencing.Columns{"qty": 5}), fencing.ErrNoTable)

		bare, err := fencing.NewSQLTable(d.dialect, d.data, fencing.WithColumn("guard"))
		require.NoError(t, err)
		require.ErrorContains(t, bare.Update(ctx, d.db, 34, sku42, fencing.Columns{"qty": 5}), bare.DDL())
		require.Error(t, stock.Update(ctx, d.db, 34, fencing.Columns{"skuu": "skuu"}, fencing.Columns{"qty": 5}), "no column, and no string either")

		err = stock.Update(ctx, d.db, 34, fencing.Columns{"qty": 10}, fencing.Columns{"shelf": "x"})
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorContains(t, err, "2 rows have the key qty")

		d.exec("CREATE TABLE " + d.data + "_null (sku int PRIMARY KEY, qty int, fence bigint)")
		d.exec("INSERT INTO " + d.data + "_null (sku, qty) VALUES (42, 1)")
		null, err := fencing.NewSQLTable(d.dialect, d.data+"_null")
		require.NoError(t, err)
		require.ErrorIs(t, null.Update(ctx, d.db, 34, sku42, fencing.Columns{"qty": 5}), fencing.ErrDamagedFence)
	})
}

func TestAFenceInTheRowOnlyGrows(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *database{
		"PostgreSQL": postgres,
		"MariaDB":    func(t *testing.T) *database { return mariadb(t, "") },
		"SQLite":     func(t *testing.T) *database { return sqlite(t, "_pragma=busy_timeout(5000)&_pragma=synchronous(0)") },
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			d.db.SetMaxOpenConns(holders)
			stock := d.stock()
			fence := func() (n int64, err error) {
				err = d.db.QueryRow("SELECT fence FROM " + d.data + " WHERE sku = 42").Scan(&n)
				return n, err
			}
			var clock, written, refused atomic.Int64
			clock.Store(1000)
			one := func(random *rand.Rand) error {
				token := redlock.Token(clock.Add(random.Int64N(3)) - random.Int64N(8))
				before, err := fence()
				if err != nil {
					return err
				}
				err = stock.Update(context.Background(), d.db, token, sku42, fencing.Columns{"qty": fencing.Add(1)})
				switch {
				case err == nil:
					written.Add(1)
					assert.GreaterOrEqual(t, int64(token), before, "a stale write was admitted")
				case errors.Is(err, fencing.ErrStaleToken):
					refused.Add(1)
				case !errors.Is(err, fencing.ErrTxConflict):
					return err
				}
				after, err := fence()
				assert.GreaterOrEqual(t, after, before, "the fence went back")
				return err
			}
			errs := make(chan error, holders)
			for holder := range holders {
				random := rand.New(rand.NewPCG(uint64(holder), 2))
				go func() {
					var err error
					for i := 0; i < writes && err == nil; i++ {
						err = one(random)
					}
					errs <- err
				}()
			}
			for range holders {
				require.NoError(t, <-errs)
			}
			assert.Equal(t, 10+written.Load(), d.int("SELECT qty FROM "+d.data+" WHERE sku = 42"))
			assert.Positive(t, refused.Load())
		})
	}
}
