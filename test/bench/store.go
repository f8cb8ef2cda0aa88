package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// A kind is a way to update one hot resource safely.
type kind string

const (
	redisStore    kind = "Redis"             // through a lock, and for ours through a gate
	postgresStore kind = "PostgreSQL"        // the same
	rowLock       kind = "SELECT FOR UPDATE" // no lock but the database's
)

// An updater takes one unit off the same stock, in one process.
type updater interface {
	update(ctx context.Context) error
	close()
}

const (
	resource = "sku:42"
	stockKey = "stock:{sku:42}"
	// enough that no run sells out.
	stock = int64(1) << 40
	// connections of all processes together, of the hundred that PostgreSQL takes.
	connections = 80
)

// openUpdater makes an updater with connections of its own.
func (c *client) openUpdater(processes int) (updater, error) {
	var db *sql.DB
	if c.Store != redisStore {
		var err error
		if db, err = openDatabase(c.Postgres, connections/processes); err != nil {
			return nil, err
		}
	}
	if c.Store == rowLock {
		return rowLocker{db}, nil
	}
	library := c.Library
	if library == quorateBatch {
		library = quorate
	}
	contender, err := open(library, c.Nodes, c.times)
	if err != nil {
		return nil, err
	}
	store := redis.NewClient(&redis.Options{Addr: c.Redis})
	own, ok := contender.(*ours)
	if !ok {
		return &locked{contender, store}, nil
	}
	g := &guarded{ours: own, store: store, db: db}
	var gate fencing.Gate
	if db == nil {
		g.redis, err = fencing.NewRedisGate(store)
		gate = g.redis
	} else {
		g.sql, err = fencing.NewSQLGate(fencing.PostgreSQL)
		gate = g.sql.On(db)
	}
	if err == nil {
		// The write admits, and decides by nothing that was read before: to ask twice would be half the speed.
		g.guard, err = fencing.NewGuard(own.locker, gate, fencing.WithoutAdmission())
	}
	if err == nil && c.Library == quorateBatch {
		g.batcher, err = fencing.NewBatcher(g.guard, func(ctx context.Context, _ string, token redlock.Token, orders []int64) error {
			units := int64(0)
			for _, n := range orders {
				units += n
			}
			return g.take(ctx, token, units)
		})
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func openDatabase(url string, connections int) (*sql.DB, error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// guarded is a guard of ours, for each update or for all who wait.
type guarded struct {
	*ours
	store   *redis.Client
	redis   *fencing.RedisGate
	db      *sql.DB
	sql     *fencing.SQLGate
	guard   *fencing.Guard
	batcher *fencing.Batcher[int64] // or nil
}

func (g *guarded) update(ctx context.Context) error {
	if g.batcher != nil {
		return g.batcher.Do(ctx, resource, 1)
	}
	return g.guard.Do(ctx, resource, func(ctx context.Context, token redlock.Token) error { return g.take(ctx, token, 1) })
}

// take takes units off the stock, and has the token admitted.
func (g *guarded) take(ctx context.Context, token redlock.Token, units int64) error {
	if g.redis != nil {
		_, err := g.redis.IncrBy(ctx, resource, token, stockKey, -units, 0)
		return err
	}
	return transact(ctx, g.db, func(tx *sql.Tx) error {
		if err := g.sql.Admit(ctx, tx, resource, token); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE stock SET qty = qty - $2 WHERE sku = $1`, resource, units)
		return err
	})
}

func (g *guarded) close() {
	g.ours.close()
	_ = g.store.Close()
	if g.db != nil {
		_ = g.db.Close()
	}
}

// locked is the same update under a peer's lock: nothing refuses a holder that comes late.
type locked struct {
	contender
	store *redis.Client
}

func (l *locked) update(ctx context.Context) error {
	h, err := l.lock(ctx, resource)
	if err != nil {
		return err
	}
	err = l.store.IncrBy(context.WithoutCancel(ctx), stockKey, -1).Err()
	return errors.Join(err, h.unlock(context.WithoutCancel(ctx)))
}

func (l *locked) close() {
	l.contender.close()
	_ = l.store.Close()
}

// rowLocker leaves it to the database, which can do it for data that are all in it.
type rowLocker struct{ db *sql.DB }

func (r rowLocker) update(ctx context.Context) error {
	return transact(ctx, r.db, func(tx *sql.Tx) error {
		var qty int64
		if err := tx.QueryRowContext(ctx, `SELECT qty FROM stock WHERE sku = $1 FOR UPDATE`, resource).Scan(&qty); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE stock SET qty = $2 WHERE sku = $1`, resource, qty-1)
		return err
	})
}

func (r rowLocker) close() { _ = r.db.Close() }

func transact(ctx context.Context, db *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // what went wrong is in err
		return err
	}
	return tx.Commit()
}

// stocked fills a store, and gives a function that tells how much was taken off since.
func (g *ground) stocked(ctx context.Context, store kind, url string) (taken func() (int64, error), err error) {
	if store == redisStore {
		client := g.store.Client()
		if err := errors.Join(client.FlushAll(ctx).Err(), client.Set(ctx, stockKey, stock, 0).Err()); err != nil {
			return nil, fmt.Errorf("fill the store: %w", err)
		}
		return func() (int64, error) {
			left, err := client.Get(ctx, stockKey).Int64()
			return stock - left, errors.Join(err, client.Close())
		}, nil
	}
	db, err := openDatabase(url, 1)
	if err != nil {
		return nil, err
	}
	gate, err := fencing.NewSQLGate(fencing.PostgreSQL)
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{
		gate.DDL(), `CREATE TABLE IF NOT EXISTS stock (sku text PRIMARY KEY, qty bigint NOT NULL)`,
		// As new, so that nobody pays for the dead rows of the one before.
		`TRUNCATE ` + fencing.DefaultTable + `, stock`,
		fmt.Sprintf(`INSERT INTO stock VALUES ('%s', %d)`, resource, stock),
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(fmt.Errorf("fill the database: %w", err), db.Close())
		}
	}
	return func() (int64, error) {
		var left int64
		err := db.QueryRowContext(ctx, `SELECT qty FROM stock WHERE sku = $1`, resource).Scan(&left)
		return stock - left, errors.Join(err, db.Close())
	}, nil
}
