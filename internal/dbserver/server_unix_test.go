//go:build unix

package dbserver

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A shell stands in for the servers here.

func TestAServerThatEndsBeforeItIsReadyIsQuotedAndLeavesNothingBehind(t *testing.T) {
	var dir string
	_, err := start("Test", func(s *Server) error {
		dir = s.dir
		return s.serve(mariadbReady, "/bin/sh", "-c", "echo the disk is full; exit 3")
	})
	require.EqualError(t, err, "dbserver: start Test: sh: exit status 3; its log says:\nthe disk is full\n")
	assert.NoDirExists(t, dir)
}

func TestAProgramThatFailsBeforeTheServerIsQuoted(t *testing.T) {
	_, err := start("Test", func(s *Server) error { return s.run("/bin/sh", "-c", "echo no space >&2; exit 1") })
	require.ErrorContains(t, err, "sh: exit status 1; its log says:\nno space\n")
	_, err = start("Test", func(s *Server) error { return s.run(filepath.Join(s.dir, "nothing")) })
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAStoppedServerIsGoneWithItsDataAndAnswersASecondStop(t *testing.T) {
	s, err := start("Test", func(s *Server) error {
		cmd, exited, err := s.launch("/bin/sh", "-c", "while :; do :; done")
		s.cmd, s.exited = cmd, exited
		return err
	})
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	assert.NotEqual(t, "0", port)
	_, err = net.ListenPacket("udp", s.Addr()) // as another process that looks for a port
	require.Error(t, err)
	s.Stop()
	s.Stop()
	assert.False(t, s.cmd.ProcessState.Success())
	assert.NoDirExists(t, s.dir)
}
