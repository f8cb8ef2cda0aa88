package gates

import (
	"fmt"
	"os"
	"testing"

	"github.com/quorate/quorate/internal/dbserver"
)

// servers are shared by all tests.
var servers struct{ postgres, mariadb *dbserver.Server }

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run starts the servers and ends them.
func run(m *testing.M) int {
	var err error
	if servers.postgres, err = dbserver.StartPostgres(); err != nil {
		fmt.Fprintln(os.Stderr, "gates:", err)
		return 1
	}
	defer servers.postgres.Stop()
	if servers.mariadb, err = dbserver.StartMariaDB(); err != nil {
		fmt.Fprintln(os.Stderr, "gates:", err)
		return 1
	}
	defer servers.mariadb.Stop()
	return m.Run()
}
