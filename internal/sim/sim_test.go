package sim

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var (
	oneSeed = flag.Uint64("seed", 0, "live this seed only")
	seeds   = flag.Int("seeds", 6, "how many fresh seeds to live")
	budget  = flag.Duration("for", 0, "live fresh seeds for this long, however many")
	workers = flag.Int("workers", 1, "how many processes share the fresh seeds")
	span    = flag.Duration("span", 3*time.Minute, "simulated time under faults, for each seed")
	first   = flag.Bool("first", false, "stop at the first seed that fails")
	saveTo  = flag.String("counts", "", "file to write what was counted to, as JSON")
)

func TestMain(m *testing.M) {
	redis.SetLogger(noLog{}) // it reports every connection that the faults break
	goleak.VerifyTestMain(m)
}

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

func TestPromisesHoldUnderFaults(t *testing.T) {
	total, begin := newCounts(), time.Now()
	live := func(seed uint64) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("again: go test ./internal/sim -seed %d -span %v -v", seed, *span)
				}
			}()
			total.add(simulate(t, seed, *span))
		})
	}
	done := func(n int) bool {
		return n >= *seeds && time.Since(begin) >= *budget || *first && t.Failed()
	}
	switch {
	case *oneSeed != 0:
		live(*oneSeed)
	case *workers > 1:
		total = share(t, *workers)
	default:
		for n := 0; !done(n); n++ {
			live(rand.Uint64() >> 32)
		}
	}
	if *saveTo != "" {
		writeCounts(t, *saveTo, total)
	}
	t.Log(total.report(time.Since(begin)))
}

func TestSeedsThatEverFailedHoldNow(t *testing.T) {
	for _, kept := range keptSeeds(t) {
		t.Run(fmt.Sprintf("seed=%d", kept), func(t *testing.T) { simulate(t, kept, 10*time.Minute) })
	}
}

// keptSeeds are those that ever failed, one to a line, with a comment behind.
func keptSeeds(t *testing.T) []uint64 {
	text, err := os.ReadFile(filepath.Join("testdata", "seeds.txt"))
	require.NoError(t, err)
	var kept []uint64
	for line := range strings.Lines(string(text)) {
		number, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number == "" || strings.HasPrefix(number, "#") {
			continue
		}
		seed, err := strconv.ParseUint(number, 10, 64)
		require.NoError(t, err)
		kept = append(kept, seed)
	}
	return kept
}
