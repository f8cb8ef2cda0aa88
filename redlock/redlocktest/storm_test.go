package redlocktest_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

// Whatever faults strike, an answer is the answer to what was asked, nothing
// deadlocks, and after everything has healed every node serves again.
func TestAnswersFitTheirQuestionsUnderAnyFaults(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, f *redlocktest.Fleet) { storm(t, f, seed) })
		})
	}
}

func storm(t *testing.T, f *redlocktest.Fleet, seed uint64) {
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for h := range 3 {
		host := f.Host(fmt.Sprint("h", h))
		for i, c := range host.Clients() {
			clients.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					case <-time.After(10 * time.Millisecond):
					}
					question := fmt.Sprintf("%d/%d/%d", h, i, n)
					answer, err := c.Echo(t.Context(), question).Result()
					if err == nil && answer != question {
						t.Errorf("asked for %q, got %q", question, answer)
					}
				}
			})
		}
	}

	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		i, host := rnd.IntN(3), f.Host(fmt.Sprint("h", rnd.IntN(3)))
		[]func(){
			func() { f.Stop(i) },
			func() { f.Restart(i) },
			func() { f.RestartEmpty(i) },
			func() { f.Hang(i) },
			func() { f.Resume(i) },
			func() { f.Delay(i, time.Duration(rnd.IntN(300))*time.Millisecond) },
			func() { f.Partition(i) },
			func() { f.Heal(i) },
			func() { host.Partition(i) },
			func() { host.Heal() },
			func() { f.SkewClock(i, time.Duration(rnd.IntN(2000)-1000)*time.Millisecond) },
			func() { f.ClockRate(i, 2*rnd.Float64()) },
			func() { f.Keys(i) },
		}[rnd.IntN(13)]()
		time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond)
	}

	f.Heal()
	for h := range 3 {
		f.Host(fmt.Sprint("h", h)).Heal()
	}
	for i := range 3 {
		f.Restart(i)
		f.Delay(i, 0)
	}
	close(stop)
	clients.Wait()
	for _, c := range f.Clients() {
		require.NoError(t, c.Ping(t.Context()).Err())
	}
}

func BenchmarkPing(b *testing.B) {
	f := redlocktest.Start(b, 1)
	c := f.Clients()[0]
	for b.Loop() {
		require.NoError(b, c.Ping(b.Context()).Err())
	}
}

func BenchmarkSetAmongKeys(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := redlocktest.Start(b, 1)
			c := f.Clients()[0]
			_, err := c.Pipelined(b.Context(), func(p redis.Pipeliner) error {
				for i := range n {
					p.Set(b.Context(), fmt.Sprint("k", i), "v", time.Hour)
				}
				return nil
			})
			require.NoError(b, err)
			for b.Loop() {
				require.NoError(b, c.Set(b.Context(), "k0", "v", time.Hour).Err())
			}
		})
	}
}
