package gates

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// A database is one of those that a test is run on, with a gate whose table is this test's own.
type database struct {
	t       *testing.T
	dialect fencing.Dialect
	db      *sql.DB
	gate    *fencing.SQLGate
	fences  string // the gate's table
	data    string // name of a table for the test's data
}

var tables atomic.Int64

func open(t *testing.T, dialect fencing.Dialect, driver, dsn string) *database {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	n := tables.Add(1)
	d := &database{t: t, dialect: dialect, db: db, fences: fmt.Sprintf("fences_%d", n), data: fmt.Sprintf("data_%d", n)}
	d.gate, err = fencing.NewSQLGate(dialect, fencing.WithTable(d.fences))
	require.NoError(t, err)
	d.exec(d.gate.DDL())
	d.exec(d.gate.DDL()) // twice does no harm
	return d
}

func postgres(t *testing.T) *database {
	s := servers.postgres
	return open(t, fencing.PostgreSQL, "pgx", fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", s.User(), s.Addr(), s.Database()))
}

func mariadb(t *testing.T, params string) *database {
	s := servers.mariadb
	return open(t, fencing.MySQL, "mysql", fmt.Sprintf("%s@tcp(%s)/%s?%s", s.User(), s.Addr(), s.Database(), params))
}

func sqlite(t *testing.T, params string) *database {
	return open(t, fencing.SQLite, "sqlite", "file:"+filepath.Join(t.TempDir(), "db")+"?_pragma=journal_mode(WAL)&"+params)
}

// onEach runs a test on each database, in the settings that make a difference.
func onEach(t *testing.T, test func(t *testing.T, d *database)) {
	t.Helper()
	for name, open := range map[string]func(t *testing.T) *database{
		"PostgreSQL":                 postgres,
		"MariaDB":                    func(t *testing.T) *database { return mariadb(t, "") },
		"MariaDB with found rows":    func(t *testing.T) *database { return mariadb(t, "clientFoundRows=true") },
		"MariaDB with interpolation": func(t *testing.T) *database { return mariadb(t, "interpolateParams=true&charset=latin1") },
		"SQLite":                     func(t *testing.T) *database { return sqlite(t, "_pragma=busy_timeout(5000)") },
		"SQLite, immediate":          func(t *testing.T) *database { return sqlite(t, "_pragma=busy_timeout(5000)&_txlock=immediate") },
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func (d *database) exec(query string, args ...any) {
	d.t.Helper()
	_, err := d.db.ExecContext(context.Background(), query, args...)
	require.NoError(d.t, err, query)
}

func (d *database) begin(opts *sql.TxOptions) *sql.Tx {
	d.t.Helper()
	tx, err := d.db.BeginTx(context.Background(), opts)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// admit admits a token in a transaction of its own.
func (d *database) admit(resource string, token redlock.Token) error {
	return d.gate.On(d.db).Admit(context.Background(), resource, token)
}

func (d *database) int(query string) (n int64) {
	d.t.Helper()
	require.NoError(d.t, d.db.QueryRow(query).Scan(&n), query)
	return n
}
