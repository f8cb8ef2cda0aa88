package main

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// A dialect is how a database is used here.
type dialect struct {
	fencing.Dialect
	driver string
	number string // the type of a column that counts its rows
}

var dialects = map[string]dialect{
	"PostgreSQL": {fencing.PostgreSQL, "pgx", "bigserial PRIMARY KEY"},
	"MariaDB":    {fencing.MySQL, "mysql", "bigint AUTO_INCREMENT PRIMARY KEY"},
	"SQLite":     {fencing.SQLite, "sqlite", "integer PRIMARY KEY AUTOINCREMENT"},
}

// sqlStore keeps stocks in a database, and fences beside them.
type sqlStore struct {
	dialect
	db            *sql.DB
	admits        *fencing.SQLGate // nil: the gate is taken out
	stocks, sales string
	fences        string
}

// connections of each process. A holder needs one at a time.
const connections = 8

func openSQL(c storeConfig, d dialect) (*sqlStore, error) {
	db, err := sql.Open(d.driver, c.DSN)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	s := &sqlStore{dialect: d, db: db, stocks: "stock_" + c.Run, sales: "sales_" + c.Run, fences: "fence_" + c.Run}
	if c.Gated {
		if s.admits, err = fencing.NewSQLGate(d.Dialect, fencing.WithTable(s.fences)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *sqlStore) prepare(ctx context.Context, skus []string, initial int64) error {
	statements := []string{
		"DROP TABLE IF EXISTS " + s.stocks, "DROP TABLE IF EXISTS " + s.sales, "DROP TABLE IF EXISTS " + s.fences,
		"CREATE TABLE " + s.stocks + " (sku varchar(40) PRIMARY KEY, qty bigint NOT NULL)",
		"CREATE TABLE " + s.sales + " (n " + s.number + ", id varchar(80) NOT NULL, sku varchar(40) NOT NULL," +
			" token bigint NOT NULL, units bigint NOT NULL, qty bigint NOT NULL)",
	}
	if s.admits != nil {
		statements = append(statements, s.admits.DDL())
	}
	for _, sku := range skus {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES ('%s', %d)", s.stocks, sku, initial))
	}
	for _, statement := range statements {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func (s *sqlStore) gate() fencing.Gate {
	if s.admits == nil {
		return open
	}
	return s.admits.On(s.db)
}

// bind numbers the placeholders where the database wants that.
func (s *sqlStore) bind(query string) string {
	if s.Dialect != fencing.PostgreSQL {
		return query
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		query = after
	}
}

func (s *sqlStore) stock(ctx context.Context, sku string) (left int64, err error) {
	err = s.db.QueryRowContext(ctx, s.bind("SELECT qty FROM "+s.stocks+" WHERE sku = ?"), sku).Scan(&left)
	return left, err
}

func (s *sqlStore) sell(ctx context.Context, sale sale) error {
	write := func(tx *sql.Tx) error { return s.write(ctx, tx, sale) }
	if s.admits != nil {
		return s.admits.InTx(ctx, s.db, nil, sale.SKU, redlock.Token(sale.Token), write)
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := write(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// write changes the stock first. That locks its row, so that the journal of a resource is in the order
// of the commits, also where no gate sees to that.
func (s *sqlStore) write(ctx context.Context, tx *sql.Tx, sale sale) error {
	set, by := "qty - ?", sale.Units
	if sale.Set {
		set, by = "?", sale.Found-sale.Units
	}
	if _, err := tx.ExecContext(ctx, s.bind("UPDATE "+s.stocks+" SET qty = "+set+" WHERE sku = ?"), by, sale.SKU); err != nil {
		return err
	}
	var left int64
	if err := tx.QueryRowContext(ctx, s.bind("SELECT qty FROM "+s.stocks+" WHERE sku = ?"), sale.SKU).Scan(&left); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, s.bind("INSERT INTO "+s.sales+" (id, sku, token, units, qty) VALUES (?, ?, ?, ?, ?)"),
		sale.ID, sale.SKU, sale.Token, sale.Units, left)
	return err
}

func (s *sqlStore) look(ctx context.Context) (map[string]shelf, error) {
	// One statement, and so one snapshot.
	rows, err := s.db.QueryContext(ctx, "SELECT sku, qty, (SELECT COALESCE(SUM(units), 0) FROM "+s.sales+" AS j WHERE j.sku = s.sku) FROM "+s.stocks+" AS s")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	shelves := map[string]shelf{}
	for rows.Next() {
		var sku string
		var sh shelf
		if err := rows.Scan(&sku, &sh.Left, &sh.Sold); err != nil {
			return nil, err
		}
		shelves[sku] = sh
	}
	return shelves, rows.Err()
}

func (s *sqlStore) journal(ctx context.Context) (entries []entry, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT id, sku, token, units, qty FROM "+s.sales+" ORDER BY n")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var e entry
		if err := rows.Scan(&e.ID, &e.SKU, &e.Token, &e.Units, &e.Left); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

func (s *sqlStore) close() error { return s.db.Close() }
