package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/dbserver"
	"github.com/quorate/quorate/test/redisserver"
)

// nodes is how many servers give the leases.
const nodes = 5

// A stage is the servers that runs are on.
type stage struct {
	nodes []string
	dsn   map[string]string // by kind of store
	dir   string
}

// newStage starts all servers. They end with tb.
func newStage(tb testing.TB) *stage {
	tb.Helper()
	s := &stage{dir: tb.TempDir()}
	for _, node := range redisserver.StartFleet(tb, nodes) {
		s.nodes = append(s.nodes, node.Addr())
	}
	start := func(begin func() (*dbserver.Server, error)) *dbserver.Server {
		server, err := begin()
		if err != nil {
			tb.Fatalf("storm: %v", err)
		}
		tb.Cleanup(server.Stop)
		return server
	}
	postgres, mariadb := start(dbserver.StartPostgres), start(dbserver.StartMariaDB)
	s.dsn = map[string]string{
		"PostgreSQL": fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", postgres.User(), postgres.Addr(), postgres.Database()),
		"MariaDB":    fmt.Sprintf("%s@tcp(%s)/%s", mariadb.User(), mariadb.Addr(), mariadb.Database()),
		// A process that is stopped in the middle of a transaction has the whole file locked: others
		// wait for as long as that may take.
		"SQLite": "file:" + filepath.Join(s.dir, "db") + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_pragma=synchronous(0)",
		"Redis":  redisserver.Start(tb).Addr(),
	}
	return s
}

// config is that of a run on one of the stores.
func (s *stage) config(kind string, gated bool) config {
	c := defaults()
	c.nodes, c.dir = s.nodes, s.dir
	c.on = storeConfig{Kind: kind, DSN: s.dsn[kind], Run: "ungated", Gated: gated}
	if gated {
		c.on.Run = "gated"
	}
	return c
}
