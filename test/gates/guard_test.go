package gates

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// The story of the package documentation: A reads, is paused, and writes when B has long been there.
func TestTheWriteOfAPausedHolderIsRefusedByTheDatabase(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *database{
		"PostgreSQL": postgres,
		"MariaDB":    func(t *testing.T) *database { return mariadb(t, "") },
		"SQLite":     func(t *testing.T) *database { return sqlite(t, "_pragma=busy_timeout(5000)") },
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			d.exec("CREATE TABLE " + d.data + " (id int PRIMARY KEY, qty int)")
			d.exec("INSERT INTO " + d.data + " VALUES (1, 10)")
			nodes := redlocktest.Start(t, 3)
			guard := func(host string, ttl time.Duration) *fencing.Guard {
				locker, err := redlock.New(nodes.Host(host).Clients(), redlock.WithTTL(ttl), redlock.WithIdentity(host))
				require.NoError(t, err)
				t.Cleanup(func() { locker.Close() })
				g, err := fencing.NewGuard(locker, d.gate.On(d.db))
				require.NoError(t, err)
				return g
			}
			sell := func(ctx context.Context, token redlock.Token, units int, pause func()) error {
				qty := d.int("SELECT qty FROM " + d.data + " WHERE id = 1")
				pause()
				return d.gate.InTx(ctx, d.db, nil, "sku:42", token, func(tx *sql.Tx) error {
					update := "UPDATE " + d.data + " SET qty = ? WHERE id = 1"
					if d.dialect == fencing.PostgreSQL {
						update = "UPDATE " + d.data + " SET qty = $1 WHERE id = 1"
					}
					_, err := tx.ExecContext(ctx, update, qty-int64(units))
					return err
				})
			}
			inside, sold, late := make(chan struct{}), make(chan struct{}), make(chan error)
			// B waits for the end of A's TTL, and keeps its own lease on a loaded machine as well.
			a, b := guard("a", time.Second), guard("b", redlock.DefaultMaxTTL)
			go func() {
				for begun := false; ; {
					err := a.Do(context.Background(), "sku:42", func(ctx context.Context, token redlock.Token) error {
						return sell(context.WithoutCancel(ctx), token, 1, func() {
							begun = true
							nodes.Host("a").Partition()
							close(inside)
							<-sold
							nodes.Host("a").Heal()
						})
					})
					if begun { // not too late for its short TTL
						late <- err
						return
					}
				}
			}()
			<-inside
			require.NoError(t, b.Do(t.Context(), "sku:42", func(ctx context.Context, token redlock.Token) error {
				return sell(ctx, token, 3, func() {})
			}))
			close(sold)
			err := <-late
			require.ErrorIs(t, err, fencing.ErrStaleToken)
			require.ErrorIs(t, err, redlock.ErrLeaseExpired)
			assert.EqualValues(t, 7, d.int("SELECT qty FROM "+d.data+" WHERE id = 1"), "B's sale is not lost")
		})
	}
}

func TestAGuardWhoseTableIsMissingRunsNothingAndGivesTheResourceBack(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		nodes := redlocktest.Start(t, 3)
		locker, err := redlock.New(nodes.Clients(), redlock.WithNodeTimeout(redlock.DefaultTTL/2)) // TryDo asks once
		require.NoError(t, err)
		t.Cleanup(func() { locker.Close() })
		missing, err := fencing.NewSQLGate(d.dialect, fencing.WithTable("nowhere"))
		require.NoError(t, err)
		guard, err := fencing.NewGuard(locker, missing.On(d.db))
		require.NoError(t, err)
		never := func(context.Context, redlock.Token) error {
			t.Error("was run without an admission")
			return nil
		}
		for range 2 { // the second finds the resource free
			err = guard.TryDo(t.Context(), "sku:42", never)
			require.ErrorIs(t, err, fencing.ErrNoTable)
			require.ErrorContains(t, err, `fencing: guard "sku:42": not admitted`)
			require.ErrorContains(t, err, "create it first: "+missing.DDL())
		}
		_, err = fencing.NewGuard(locker, d.gate.On(nil))
		require.ErrorIs(t, err, redlock.ErrInvalidOption, "a gate on no database is none")
	})
}
