package fencing_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// answers is a database that says what a test has it say; test/gates asks real ones.
type answers struct {
	execErr   error
	commitErr error
	affected  int64
	row       driver.Value // of a query; nil for no row
	said      []string
}

func (a *answers) Connect(context.Context) (driver.Conn, error) { return answering{a}, nil }
func (a *answers) Driver() driver.Driver                        { return nil }

type answering struct{ *answers }

func (c answering) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not prepared") }
func (c answering) Close() error                        { return nil }
func (c answering) Begin() (driver.Tx, error)           { return c, nil }
func (c answering) Rollback() error                     { c.said = append(c.said, "ROLLBACK"); return nil }
func (c answering) Commit() error                       { c.said = append(c.said, "COMMIT"); return c.commitErr }

func (c answering) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.said = append(c.said, said(query, args))
	return driver.RowsAffected(c.affected), c.execErr
}

func (c answering) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.said = append(c.said, said(query, args))
	return &oneRow{c.row}, nil
}

func said(query string, args []driver.NamedValue) string {
	for _, a := range args {
		if b, ok := a.Value.([]byte); ok {
			a.Value = string(b)
		}
		query += fmt.Sprint(" | ", a.Value)
	}
	return query
}

type oneRow struct{ value driver.Value }

func (r *oneRow) Columns() []string { return []string{"token"} }
func (r *oneRow) Close() error      { return nil }
func (r *oneRow) Next(into []driver.Value) error {
	if r.value == nil {
		return io.EOF
	}
	into[0], r.value = r.value, nil
	return nil
}

func newSQLGate(t *testing.T, dialect fencing.Dialect, opts ...fencing.SQLOption) *fencing.SQLGate {
	t.Helper()
	gate, err := fencing.NewSQLGate(dialect, opts...)
	require.NoError(t, err)
	return gate
}

func TestWhatADatabaseIsAsked(t *testing.T) {
	for dialect, want := range map[fencing.Dialect][]string{
		fencing.PostgreSQL: {
			`CREATE TABLE IF NOT EXISTS "app"."fe""nce" ("resource" text COLLATE "C" NOT NULL PRIMARY KEY, "token" bigint NOT NULL)`,
			`INSERT INTO "app"."fe""nce" AS "fence" ("resource", "token") VALUES ($1, $2) ON CONFLICT ("resource") DO UPDATE SET "token" = excluded."token" WHERE "fence"."token" <= excluded."token" | sku:42 | 33`,
			`SELECT "token" FROM "app"."fe""nce" WHERE "resource" = $1 | sku:42`,
			"ROLLBACK",
		},
		fencing.MySQL: {
			"CREATE TABLE IF NOT EXISTS `app`.`fe\"nce` (`resource` varbinary(512) NOT NULL PRIMARY KEY, `token` bigint NOT NULL) ENGINE=InnoDB",
			"INSERT INTO `app`.`fe\"nce` (`resource`, `token`) VALUES (?, ?) ON DUPLICATE KEY UPDATE `token` = GREATEST(`token`, ?) | sku:42 | 33 | 33",
			"SELECT `token` FROM `app`.`fe\"nce` WHERE `resource` = ? FOR UPDATE | sku:42",
			"ROLLBACK",
		},
		fencing.SQLite: {
			"CREATE TABLE IF NOT EXISTS `app`.`fe\"nce` (`resource` text NOT NULL PRIMARY KEY, `token` bigint NOT NULL)",
			"INSERT INTO `app`.`fe\"nce` AS `fence` (`resource`, `token`) VALUES (?, ?) ON CONFLICT (`resource`) DO UPDATE SET `token` = excluded.`token` WHERE `fence`.`token` <= excluded.`token` | sku:42 | 33",
			"SELECT `token` FROM `app`.`fe\"nce` WHERE `resource` = ? | sku:42",
			"ROLLBACK",
		},
	} {
		t.Run(dialect.String(), func(t *testing.T) {
			a := &answers{row: int64(34)}
			db := sql.OpenDB(a)
			defer db.Close()
			gate := newSQLGate(t, dialect, fencing.WithTable(`app.fe"nce`))
			err := gate.InTx(t.Context(), db, nil, "sku:42", 33, func(*sql.Tx) error {
				t.Error("was run with a stale token")
				return nil
			})
			var stale *fencing.StaleError
			require.ErrorAs(t, err, &stale)
			assert.Equal(t, fencing.StaleError{Resource: "sku:42", Token: 33, Seen: 34}, *stale)
			assert.Equal(t, want, append([]string{gate.DDL()}, a.said...))
		})
	}
}

func TestTheStatementOfAnUpdateCarriesItsCheck(t *testing.T) {
	key, set := fencing.Columns{"sku": 42, "depot": "x"}, fencing.Columns{"qty": fencing.Add(-1), "Shelf": nil}
	for dialect, want := range map[fencing.Dialect][2]string{
		fencing.PostgreSQL: {
			`UPDATE "app"."stock" SET "Shelf" = $1, "qty" = "qty" + $2, "fence" = $3 WHERE "depot" = $4 AND "sku" = $5 AND "fence" <= $6`,
			`ALTER TABLE "app"."stock" ADD COLUMN "fence" bigint DEFAULT 0 NOT NULL`,
		},
		fencing.MySQL: {
			"UPDATE `app`.`stock` SET `Shelf` = ?, `qty` = `qty` + ?, `fence` = ? WHERE `depot` = ? AND `sku` = ? AND `fence` <= ?",
			"ALTER TABLE `app`.`stock` ADD COLUMN `fence` bigint DEFAULT 0 NOT NULL",
		},
		fencing.SQLite: {
			"UPDATE `app`.`stock` SET `Shelf` = ?, `qty` = `qty` + ?, `fence` = ? WHERE `depot` = ? AND `sku` = ? AND `fence` <= ?",
			"ALTER TABLE `app`.`stock` ADD COLUMN `fence` bigint DEFAULT 0 NOT NULL",
		},
	} {
		table, err := fencing.NewSQLTable(dialect, "app.stock")
		require.NoError(t, err)
		query, args, err := table.Statement(33, key, set)
		require.NoError(t, err)
		assert.Equal(t, want, [2]string{query, table.DDL()})
		assert.Equal(t, []any{nil, int64(-1), int64(33), "x", 42, int64(33)}, args)
	}
}

// stateError is an error as the drivers for PostgreSQL have them.
type stateError string

func (e stateError) Error() string    { return "ERROR: something (SQLSTATE " + string(e) + ")" }
func (e stateError) SQLState() string { return string(e) }

func TestAConflictIsToldFromAnythingElse(t *testing.T) {
	type says map[error]error
	for dialect, errs := range map[fencing.Dialect]says{
		fencing.PostgreSQL: {
			stateError("40001"): fencing.ErrTxConflict, stateError("40P01"): fencing.ErrTxConflict, stateError("55P03"): fencing.ErrTxConflict,
			stateError("42P01"): fencing.ErrNoTable, stateError("23505"): nil, errors.New("ERROR 40001"): nil,
		},
		fencing.MySQL: {
			errors.New("Error 1213 (40001): Deadlock found when trying to get lock"): fencing.ErrTxConflict,
			errors.New("exec: Error 1205: Lock wait timeout exceeded"):               fencing.ErrTxConflict,
			errors.New("Error 1020 (HY000): Record has changed since last read"):     fencing.ErrTxConflict,
			errors.New("Error 1146 (42S02): Table 'x' doesn't exist"):                fencing.ErrNoTable,
			errors.New("Error 12134 (40001): x"):                                     nil,
			errors.New("Error 1213"):                                                 nil,
			errors.New("Error "):                                                     nil,
			errors.New("invalid connection"):                                         nil,
		},
		fencing.SQLite: {
			errors.New("database is locked (5) (SQLITE_BUSY)"):            fencing.ErrTxConflict,
			errors.New("database table is locked"):                        fencing.ErrTxConflict,
			errors.New("SQL logic error: no such table: quorate_fence"):   fencing.ErrNoTable,
			errors.New("attempt to write a readonly database"):            nil,
			fmt.Errorf("wrapped: %w", errors.New("database is locked")):   fencing.ErrTxConflict,
			fmt.Errorf("wrapped: %w", errors.New("database disk full")):   nil,
			fmt.Errorf("wrapped: %w", errors.New("no such table: other")): fencing.ErrNoTable,
		},
	} {
		gate := newSQLGate(t, dialect)
		for err, want := range errs {
			db := sql.OpenDB(&answers{execErr: err})
			tx, beginErr := db.BeginTx(t.Context(), nil)
			require.NoError(t, beginErr)
			got := gate.Admit(t.Context(), tx, "sku:42", 33)
			require.ErrorIs(t, got, err)
			require.NotErrorIs(t, got, fencing.ErrStaleToken)
			for _, condition := range []error{fencing.ErrTxConflict, fencing.ErrNoTable} {
				assert.Equal(t, errors.Is(want, condition), errors.Is(got, condition), "%v: %v", dialect, err)
			}
			assert.Equal(t, errors.Is(want, fencing.ErrTxConflict), gate.Conflict(err))
			require.NoError(t, tx.Rollback())
			require.NoError(t, db.Close())
		}
		assert.False(t, gate.Conflict(nil))
	}
}

func TestAFenceThatIsNotWhatWasWrittenAdmitsNobody(t *testing.T) {
	for row, dialects := range map[driver.Value][]fencing.Dialect{
		nil:       {fencing.PostgreSQL, fencing.MySQL, fencing.SQLite}, // deleted
		int64(33): {fencing.PostgreSQL, fencing.SQLite},                // not written, though it could be
	} {
		for _, dialect := range dialects {
			db := sql.OpenDB(&answers{row: row})
			err := newSQLGate(t, dialect).On(db).Admit(t.Context(), "sku:42", 33)
			require.ErrorIs(t, err, fencing.ErrDamagedFence, "%v with %v", dialect, row)
			require.NoError(t, db.Close())
		}
	}
}

// The writes may be there: a second run would write them twice.
func TestACommitWhoseAnswerIsLostIsNotRunAgain(t *testing.T) {
	lost := errors.New("connection reset by peer")
	db := sql.OpenDB(&answers{affected: 1, commitErr: lost})
	defer db.Close()
	runs := 0
	err := newSQLGate(t, fencing.PostgreSQL).InTx(t.Context(), db, nil, "sku:42", 33, func(*sql.Tx) error {
		runs++
		return nil
	})
	require.ErrorIs(t, err, lost)
	assert.Equal(t, 1, runs)
}

func TestAnUpdateThatFoundNothingLooksAgain(t *testing.T) {
	for _, c := range []struct {
		dialect fencing.Dialect
		row     driver.Value
		want    error
	}{
		{fencing.PostgreSQL, int64(34), fencing.ErrStaleToken},
		{fencing.PostgreSQL, int64(33), fencing.ErrTxConflict}, // it came in the meantime
		{fencing.SQLite, int64(32), fencing.ErrTxConflict},
		{fencing.MySQL, int64(34), fencing.ErrStaleToken},
		{fencing.MySQL, int64(33), nil}, // as it should be already
		{fencing.MySQL, int64(32), fencing.ErrTxConflict},
		{fencing.PostgreSQL, nil, fencing.ErrNoRow},
	} {
		db := sql.OpenDB(&answers{row: c.row})
		table, err := fencing.NewSQLTable(c.dialect, "stock")
		require.NoError(t, err)
		err = table.Update(t.Context(), db, 33, fencing.Columns{"sku": 42}, fencing.Columns{"qty": 1})
		require.ErrorIs(t, err, c.want, "%+v", c)
		require.NoError(t, db.Close())
	}
}

func TestRefusalsOfADatabaseAreCounted(t *testing.T) {
	reader := metric.NewManualReader()
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	db := sql.OpenDB(&answers{row: int64(34)})
	defer db.Close()
	require.Error(t, newSQLGate(t, fencing.MySQL, fencing.WithMeterProvider(meters)).On(db).Admit(t.Context(), "sku:42", 33))
	table, err := fencing.NewSQLTable(fencing.MySQL, "stock", fencing.WithMeterProvider(meters))
	require.NoError(t, err)
	require.Error(t, table.Update(t.Context(), db, 33, fencing.Columns{"sku": 42}, fencing.Columns{"qty": 1}))
	assert.Equal(t, map[string]int64{"quorate.gate=mysql": 2}, counts(t, reader, "quorate.fencing.stale"))
}

func TestBadInputOfASQLGate(t *testing.T) {
	for says, make := range map[string]func() error{
		"dialect 0":                  func() error { _, err := fencing.NewSQLGate(0); return err },
		"dialect 9; use PostgreSQL":  func() error { _, err := fencing.NewSQLTable(9, "t"); return err },
		"a nil SQLOption":            func() error { _, err := fencing.NewSQLGate(fencing.MySQL, nil); return err },
		"the table is empty":         func() error { _, err := fencing.NewSQLGate(fencing.MySQL, fencing.WithTable("")); return err },
		"more than one dot":          func() error { _, err := fencing.NewSQLTable(fencing.MySQL, "a.b.c"); return err },
		"the limit is 63":            func() error { _, err := fencing.NewSQLTable(fencing.MySQL, strings.Repeat("x", 64)); return err },
		`table "a\x00" has a`:        func() error { _, err := fencing.NewSQLTable(fencing.MySQL, "a\x00"); return err },
		`table "a\xff" is not UTF-8`: func() error { _, err := fencing.NewSQLTable(fencing.MySQL, "a\xff"); return err },
		"ends in a space":            func() error { _, err := fencing.NewSQLTable(fencing.MySQL, "a "); return err },
		"the column is empty": func() error {
			_, err := fencing.NewSQLTable(fencing.MySQL, "a", fencing.WithColumn(""))
			return err
		},
	} {
		err := make()
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorContains(t, err, says)
	}

	a := &answers{affected: 1}
	db := sql.OpenDB(a)
	defer db.Close()
	ctx := t.Context()
	gate := newSQLGate(t, fencing.SQLite)
	require.ErrorIs(t, gate.Admit(ctx, nil, "sku:42", 33), redlock.ErrInvalidOption)
	require.ErrorIs(t, gate.InTx(ctx, nil, nil, "sku:42", 33, func(*sql.Tx) error { return nil }), redlock.ErrInvalidOption)
	require.ErrorIs(t, gate.InTx(ctx, db, nil, "sku:42", 33, nil), redlock.ErrInvalidOption)
	require.Nil(t, gate.On(nil))
	require.Nil(t, (*fencing.SQLGate)(nil).On(db))
	table, err := fencing.NewSQLTable(fencing.SQLite, "stock")
	require.NoError(t, err)
	key, set := fencing.Columns{"sku": 42}, fencing.Columns{"qty": 1}
	for _, nobody := range []fencing.DB{nil, (*sql.DB)(nil), (*sql.Tx)(nil), (*sql.Conn)(nil)} {
		require.ErrorIs(t, table.Update(ctx, nobody, 33, key, set), redlock.ErrInvalidOption)
	}
	for says, c := range map[string][2]fencing.Columns{
		"the key is empty":      {nil, set},
		"no columns to set":     {key, nil},
		"is the fence itself":   {key, {"Fence": 1}},
		"the column is empty":   {key, {"": 1}},
		"NULL equals nothing":   {{"sku": nil}, set},
		"for what is set":       {{"sku": fencing.Add(1)}, set},
		`column "a\x00" has a `: {{"a\x00": 1}, set},
	} {
		err := table.Update(ctx, db, 33, c[0], c[1])
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorContains(t, err, says)
	}
	for _, token := range []redlock.Token{0, -1, 1 << 53} {
		require.ErrorIs(t, table.Update(ctx, db, token, key, set), fencing.ErrInvalidToken)
	}
	assert.Empty(t, a.said)
}

func TestAGuardsAdmissionIsOneStatement(t *testing.T) {
	for _, dialect := range []fencing.Dialect{fencing.PostgreSQL, fencing.SQLite} {
		a := &answers{affected: 1}
		db := sql.OpenDB(a)
		defer db.Close()
		require.NoError(t, newSQLGate(t, dialect).On(db).Admit(t.Context(), "sku:42", 33))
		require.Len(t, a.said, 1)
		require.Contains(t, a.said[0], "INSERT INTO")
	}
}
