package gates

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

const (
	holders = 8
	writes  = 40 // of each holder
)

// A tale is what holders with tokens in any order have done to one counter.
type tale struct {
	written, refused, undone int64
	wrong                    []string
}

// tell has holders write with tokens that come too late, in time and twice. Each write reads the
// counter, adds one, and enters its token in the record under the number that it has read: whoever
// writes beside another has read the same.
func (d *database) tell(opts *sql.TxOptions, write func(tx *sql.Tx, token redlock.Token, work func(*sql.Tx) error) error) tale {
	d.t.Helper()
	d.exec("CREATE TABLE " + d.data + " (id int PRIMARY KEY, qty int NOT NULL)")
	d.exec("CREATE TABLE " + d.data + "_record (number int NOT NULL, token bigint NOT NULL)")
	d.exec("INSERT INTO " + d.data + " VALUES (1, 0)")
	number, insert := "UPDATE "+d.data+" SET qty = ? WHERE id = 1", "INSERT INTO "+d.data+"_record VALUES (?, ?)"
	if d.dialect == fencing.PostgreSQL {
		number, insert = "UPDATE "+d.data+" SET qty = $1 WHERE id = 1", "INSERT INTO "+d.data+"_record VALUES ($1, $2)"
	}

	var clock, written, refused, undone atomic.Int64
	clock.Store(1000)
	var workers sync.WaitGroup
	for holder := range holders {
		random := rand.New(rand.NewPCG(uint64(holder), 1))
		workers.Go(func() {
			for range writes {
				token := redlock.Token(clock.Add(random.Int64N(3)) - random.Int64N(8))
				work := func(tx *sql.Tx) error {
					var qty int64
					if err := tx.QueryRow("SELECT qty FROM " + d.data + " WHERE id = 1").Scan(&qty); err != nil {
						return err
					}
					if _, err := tx.Exec(insert, qty, int64(token)); err != nil {
						return err
					}
					_, err := tx.Exec(number, qty+1)
					return err
				}
				err := func() error {
					tx, err := d.db.BeginTx(context.Background(), opts)
					if err != nil {
						return err
					}
					defer func() { _ = tx.Rollback() }()
					if err := write(tx, token, work); err != nil {
						return err
					}
					return tx.Commit()
				}()
				switch {
				case err == nil:
					written.Add(1)
				case errors.Is(err, fencing.ErrStaleToken):
					refused.Add(1)
				case d.gate.Conflict(err):
					undone.Add(1)
				default:
					assert.NoError(d.t, err)
				}
			}
		})
	}
	workers.Wait()
	s := tale{written: written.Load(), refused: refused.Load(), undone: undone.Load()}
	s.wrong = d.audit(s.written)
	return s
}

// audit reads the record: one write after the other, none with a token below one before it.
func (d *database) audit(written int64) (wrong []string) {
	d.t.Helper()
	rows, err := d.db.Query("SELECT number, token FROM " + d.data + "_record ORDER BY number, token")
	require.NoError(d.t, err)
	defer rows.Close()
	var n, last int64
	for ; rows.Next(); n++ {
		var number, token int64
		require.NoError(d.t, rows.Scan(&number, &token))
		if number != n {
			wrong = append(wrong, fmt.Sprintf("write %d has read %d", n, number))
		}
		if token < last {
			wrong = append(wrong, fmt.Sprintf("token %d wrote after %d", token, last))
		}
		last = max(last, token)
	}
	require.NoError(d.t, rows.Err())
	if qty := d.int("SELECT qty FROM " + d.data + " WHERE id = 1"); qty != written || n != written {
		wrong = append(wrong, fmt.Sprintf("%d writes succeeded, %d are on record and %d in the sum", written, n, qty))
	}
	return wrong
}

func TestNoStaleWriteIsAdmittedWhoeverWritesWhen(t *testing.T) {
	for name, c := range map[string]struct {
		open  func(t *testing.T) *database
		level sql.IsolationLevel
	}{
		"PostgreSQL":                  {postgres, sql.LevelDefault},
		"PostgreSQL, repeatable read": {postgres, sql.LevelRepeatableRead},
		"PostgreSQL, serializable":    {postgres, sql.LevelSerializable},
		"MariaDB":                     {func(t *testing.T) *database { return mariadb(t, "") }, sql.LevelDefault},
		"MariaDB, read committed":     {func(t *testing.T) *database { return mariadb(t, "") }, sql.LevelReadCommitted},
		"MariaDB, serializable":       {func(t *testing.T) *database { return mariadb(t, "") }, sql.LevelSerializable},
		"MariaDB with found rows":     {func(t *testing.T) *database { return mariadb(t, "clientFoundRows=true") }, sql.LevelDefault},
		"SQLite":                      {func(t *testing.T) *database { return sqlite(t, "_pragma=busy_timeout(5000)&_pragma=synchronous(0)") }, sql.LevelDefault},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.open(t)
			d.db.SetMaxOpenConns(2 * holders)
			watched, over := make(chan struct{}), make(chan struct{})
			go d.watch(over, watched)
			s := d.tell(&sql.TxOptions{Isolation: c.level}, func(tx *sql.Tx, token redlock.Token, work func(*sql.Tx) error) error {
				if err := d.gate.Admit(context.Background(), tx, "sku:42", token); err != nil {
					return err
				}
				return work(tx)
			})
			close(over)
			<-watched
			t.Logf("%d written, %d refused, %d undone", s.written, s.refused, s.undone)
			assert.Empty(t, s.wrong)
			assert.Positive(t, s.written)
			assert.Positive(t, s.refused, "no token came too late: the test shows nothing")
			highest := d.int("SELECT max(token) FROM " + d.data + "_record")
			assert.Equal(t, highest, d.int("SELECT token FROM "+d.fences))
		})
	}
}

// watch sees that the fence only grows.
func (d *database) watch(over <-chan struct{}, watched chan<- struct{}) {
	defer close(watched)
	var last int64
	for {
		select {
		case <-over:
			return
		default:
		}
		var fence int64
		if err := d.db.QueryRow("SELECT token FROM " + d.fences).Scan(&fence); err == nil {
			assert.GreaterOrEqual(d.t, fence, last)
			last = fence
		}
	}
}

// The test above can fail: without the gate the same writes come in any order, and over each other.
func TestWithoutTheGateStaleWritesLand(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *database{
		"PostgreSQL": postgres,
		"MariaDB":    func(t *testing.T) *database { return mariadb(t, "") },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t).tell(nil, func(tx *sql.Tx, _ redlock.Token, work func(*sql.Tx) error) error { return work(tx) })
			assert.NotEmpty(t, s.wrong)
		})
	}
}
