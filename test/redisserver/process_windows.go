package redisserver

import (
	"errors"
	"os/exec"
)

var errNoSignals = errors.New("redis-server and its signals need Linux or macOS: run these tests there, or in WSL")

func dieWithParent(*exec.Cmd) {}

func tieToParent(int) (release func()) { return func() {} }

func (p *process) pause() error  { return errNoSignals }
func (p *process) resume() error { return errNoSignals }
func (p *process) paused() bool  { return false }
