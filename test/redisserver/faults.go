package redisserver

import (
	"errors"
	"os"
	"strings"
	"time"
)

// Kill ends the server with SIGKILL, frozen or not, and waits until it is gone: connections to
// it are refused from then on. Killing a dead server does nothing.
func (s *Server) Kill() {
	if p := s.process(); p != nil {
		p.kill()
	}
}

// Restart kills the server, if it runs, and starts it again on the same port with the data
// that it has on disk: none, unless persistence was asked for.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	s.relaunch()
}

// RestartEmpty kills the server, deletes its data and starts it again on the same port.
func (s *Server) RestartEmpty() {
	s.tb.Helper()
	s.Kill()
	err := os.RemoveAll(s.dataDir())
	if err == nil {
		err = os.Mkdir(s.dataDir(), 0o700)
	}
	if err != nil {
		s.tb.Errorf("redisserver: delete the data of %s: %v", s.Addr(), err)
		return
	}
	s.relaunch()
}

func (s *Server) relaunch() {
	s.tb.Helper()
	// The clients know this port and no other, so wait where another process has it.
	deadline := time.Now().Add(startTimeout)
	err := s.launch()
	for errors.Is(err, errPortClash) && time.Now().Before(deadline) {
		err = s.launch()
	}
	if err != nil {
		s.tb.Errorf("redisserver: restart %s: %v", s.Addr(), err)
	}
}

// Pause freezes the server with SIGSTOP and returns once it stands still. Its connections
// stay open, and the kernel even accepts new ones; nothing is answered.
func (s *Server) Pause() {
	s.tb.Helper()
	p := s.process()
	if err := p.pause(); err != nil {
		s.tb.Errorf("redisserver: pause %s: %v", s.Addr(), err)
		return
	}
	if err := s.await("the server to stand still", func() (bool, error) {
		if !p.running() {
			return false, permanent{errors.New("the server has ended")}
		}
		return p.paused(), nil
	}); err != nil {
		s.tb.Errorf("redisserver: pause %s: %v", s.Addr(), err)
	}
}

// Resume lets a frozen server go on, beginning with all that has reached it meanwhile.
func (s *Server) Resume() {
	s.tb.Helper()
	if err := s.process().resume(); err != nil {
		s.tb.Errorf("redisserver: resume %s: %v", s.Addr(), err)
	}
}

func (s *Server) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// close ends the server for good and, where the test failed, says what the server had to say.
func (s *Server) close() {
	s.Kill()
	if s.port != 0 {
		releasePort(s.port)
		releasePort(s.busPort)
	}
	if s.tb.Failed() {
		s.tb.Logf("redisserver: the end of the log of %s:\n%s", s.Addr(), tail(s.logFrom(0), logLines))
	}
}

// logLines is how much of a log goes into a test's output.
const logLines = 60

func (s *Server) logSize() int {
	info, err := os.Stat(s.logFile())
	if err != nil {
		return 0
	}
	return int(info.Size())
}

func (s *Server) logFrom(offset int) string {
	log, err := os.ReadFile(s.logFile())
	if err != nil || offset > len(log) {
		return ""
	}
	return string(log[offset:])
}

func tail(text string, lines int) string {
	all := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}
