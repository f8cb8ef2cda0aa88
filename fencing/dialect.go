package fencing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quorate/quorate/redlock"
)

// A Dialect is the language of a database. The zero value is none.
type Dialect int

// The dialects. MySQL is that of MariaDB as well.
const (
	PostgreSQL Dialect = iota + 1
	MySQL
	SQLite
)

// String is the name of the dialect, as it is in telemetry.
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "postgresql"
	case MySQL:
		return "mysql"
	case SQLite:
		return "sqlite"
	}
	return fmt.Sprintf("dialect %d", int(d))
}

func (d Dialect) check() error {
	if d < PostgreSQL || d > SQLite {
		return fmt.Errorf("fencing: %w: %v; use PostgreSQL, MySQL or SQLite", redlock.ErrInvalidOption, d)
	}
	return nil
}

// placeholder is that of the nth argument, from 1.
func (d Dialect) placeholder(n int) string {
	if d == PostgreSQL {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

// quote makes an identifier of one name, whatever is in it. SQLite gets backquotes, which it takes from
// MySQL: what it finds in double quotes and does not know as a column, it takes for a string.
func (d Dialect) quote(name string) string {
	if d == PostgreSQL {
		return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// quoteTable quotes a table's name, or one with its schema before it.
func (d Dialect) quoteTable(table string) string {
	parts := strings.Split(table, ".")
	for i, part := range parts {
		parts[i] = d.quote(part)
	}
	return strings.Join(parts, ".")
}

// maxIdentifier is the longest identifier, in bytes, that PostgreSQL does not cut, so that two
// names never become one. The others take a little more.
const maxIdentifier = 63

func checkIdentifier(what, name string) error {
	says := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+what+" %.80q "+format, append([]any{redlock.ErrInvalidOption, name}, args...)...)
	}
	switch {
	case name == "":
		return fmt.Errorf("%w: the %s is empty", redlock.ErrInvalidOption, what)
	case len(name) > maxIdentifier:
		return says("has %d bytes, the limit is %d", len(name), maxIdentifier)
	case !utf8.ValidString(name):
		return says("is not UTF-8")
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r > 0xffff }):
		return says("has a character that not every database takes")
	case strings.HasSuffix(name, " "):
		return says("ends in a space, which MySQL does not take")
	}
	return nil
}

func checkTable(table string) error {
	parts := strings.Split(table, ".")
	if len(parts) > 2 {
		return fmt.Errorf("%w: the table %.80q has more than one dot; write it as table or schema.table", redlock.ErrInvalidOption, table)
	}
	for _, part := range parts {
		if err := checkIdentifier("table", part); err != nil {
			return err
		}
	}
	return nil
}

// Errors of databases, by what the drivers have in common: those for PostgreSQL tell the SQLSTATE,
// the one for MySQL writes its number into the text, and those for SQLite the words of SQLite.

// conflicts are the errors after which the same transaction, run again, may pass.
var conflicts = map[Dialect][]string{
	PostgreSQL: {
		"40001", // serialization_failure: somebody else changed the row after this one's snapshot
		"40P01", // deadlock_detected
		"55P03", // lock_not_available: lock_timeout
	},
	MySQL: {
		"1213", // ER_LOCK_DEADLOCK
		"1205", // ER_LOCK_WAIT_TIMEOUT: InnoDB undid the statement only, the caller must undo the rest
		"1020", // ER_CHECKREAD: MariaDB with innodb_snapshot_isolation
	},
	SQLite: {
		"database is locked", // SQLITE_BUSY, and its variant of a snapshot that is too old
		"database table is locked",
	},
}

// noTables are the errors that tell of a table that is not there.
var noTables = map[Dialect][]string{
	PostgreSQL: {"42P01", "3F000"}, // undefined_table, invalid_schema_name
	MySQL:      {"1146", "1049"},   // ER_NO_SUCH_TABLE, ER_BAD_DB_ERROR
	SQLite:     {"no such table", "unknown database"},
}

// noColumns are the errors that tell of a column that is not there.
var noColumns = map[Dialect][]string{
	PostgreSQL: {"42703"}, // undefined_column
	MySQL:      {"1054"},  // ER_BAD_FIELD_ERROR
	SQLite:     {"no such column"},
}

// is reports whether an error of a driver is one of these.
func (d Dialect) is(err error, these map[Dialect][]string) bool {
	if err == nil {
		return false
	}
	switch d {
	case PostgreSQL:
		var e interface{ SQLState() string }
		return errors.As(err, &e) && slices.Contains(these[d], e.SQLState())
	case MySQL:
		return slices.Contains(these[d], mysqlNumber(err))
	}
	return slices.ContainsFunc(these[d], func(text string) bool { return strings.Contains(err.Error(), text) })
}

// mysqlNumber is the number in "Error 1213 (40001): Deadlock found …", also where other words are
// before it.
func mysqlNumber(err error) string {
	_, rest, found := strings.Cut(err.Error(), "Error ")
	if !found {
		return ""
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end <= 0 || (rest[end] != ':' && !strings.HasPrefix(rest[end:], " (")) {
		return ""
	}
	return rest[:end]
}

// explain says what an error of the database means, and what to do.
func (d Dialect) explain(ctx context.Context, err error, ddl string) error {
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case d.is(err, conflicts):
		return fmt.Errorf("%w: %w; roll back, and run the transaction again", ErrTxConflict, err)
	case d.is(err, noTables):
		return fmt.Errorf("%w: %w; create it first: %s", ErrNoTable, err, ddl)
	}
	return err
}
