package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// share lives fresh seeds in several processes of one thread each: goroutines of a bubble that
// hand over to each other are slower where they have to cross threads.
func share(t *testing.T, processes int) counts {
	total := newCounts()
	var mu sync.Mutex
	var wg sync.WaitGroup
	dir := t.TempDir()
	for i := range processes {
		file := filepath.Join(dir, fmt.Sprint(i))
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.timeout", "0",
			"-for", (*budget).String(), "-seeds", fmt.Sprint(*seeds/processes), "-span", (*span).String(), "-counts", file)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, &out)
			}
			c, err := readCounts(file)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(c)
		})
	}
	wg.Wait()
	return total
}

func readCounts(file string) (counts, error) {
	c := newCounts()
	text, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

func writeCounts(t *testing.T, file string, c counts) {
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
}
