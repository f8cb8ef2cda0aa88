package main

import (
	"encoding/json"
	"path/filepath"

	"github.com/quorate/quorate/test/rig"
)

// process is a client process as the harness sees it.
type process struct {
	rig.Process
	config clientConfig
}

// startProcess starts a client. What it reports goes to handle, on one goroutine.
func startProcess(config clientConfig, dir string, handle func(event)) (*process, error) {
	p := &process{config: config}
	spec := rig.Spec{Env: clientEnv, Config: config, Log: filepath.Join(dir, config.identity()+".log")}
	return p, p.Start(spec, func(line []byte) {
		var e event
		// The last line of a process that was killed may be cut off.
		if err := json.Unmarshal(line, &e); err == nil {
			handle(e)
		}
	})
}

// window is a stretch of time. An end of 0 is not over yet.
type window struct{ begin, end int64 }
