package dbserver

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// These tests need no server. That both are started and answer, the tests of the gates see.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAServerThatIsNotInstalledIsNamedWithWhereItWasLookedForAndWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := find("initdb", "PostgreSQL", "/nowhere", "/nor/here")
	require.ErrorIs(t, err, ErrNotInstalled)
	assert.EqualError(t, err, "dbserver: PostgreSQL is not installed: no initdb on the PATH, nor in /nowhere, /nor/here; "+
		"run scripts/install-databases, or install PostgreSQL by your system's package manager")
}

func TestTheNewestProgramBesideThePathIsTaken(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	for _, version := range []string{"15", "16"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, version, "bin"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, "bin", "initdb"), nil, 0o700))
	}
	path, err := find("initdb", "PostgreSQL", "/nowhere", filepath.Join(dir, "*", "bin"))
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "16", "bin", "initdb"), path)
}

func TestAServerIsReadyWhenItSaysSoAndNotWhenItsPortIsOpen(t *testing.T) {
	s := &Server{user: "quorate", database: "postgres"}
	for name, c := range map[string]struct {
		ready   func(net.Conn) error
		answers map[string]bool
	}{
		"PostgreSQL": {s.postgresReady, map[string]bool{"R": true, "E": false, "": false}},
		"MariaDB":    {mariadbReady, map[string]bool{"\x01\x00\x00\x00\x0a": true, "\x01\x00\x00\x00\xff": false, "": false}},
	} {
		for answer, ready := range c.answers {
			ours, theirs := net.Pipe()
			go func() {
				if name == "PostgreSQL" {
					_, _ = theirs.Read(make([]byte, 100))
				}
				_, _ = theirs.Write([]byte(answer))
				if ready {
					_, _ = theirs.Read(make([]byte, 100))
				}
				_ = theirs.Close()
			}()
			assert.Equal(t, ready, c.ready(ours) == nil, "%s, %q", name, answer)
			require.NoError(t, ours.Close())
		}
	}
}
