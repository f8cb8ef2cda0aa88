package dbserver

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNotInstalled tells that the program of a server is not on this machine. The error around it says
// which one, and where it was looked for.
var ErrNotInstalled = errors.New("not installed")

// find looks for a program on the PATH, and where distributions put it beside.
func find(program, product string, places ...string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, place := range places {
		// The pattern is ours, and well formed. The last is the newest version.
		if found, _ := filepath.Glob(filepath.Join(place, program)); len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("dbserver: %s is %w: no %s on the PATH, nor in %s; run scripts/install-databases, or install %s by your system's package manager",
		product, ErrNotInstalled, program, strings.Join(places, ", "), product)
}
