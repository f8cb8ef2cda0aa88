package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// pausedHolder is the story of the package documentation: A reads, is paused, and writes when B
// has long been there. It returns what became of A's write.
func (w *world) pausedHolder(gate fencing.Gate, set func(ctx context.Context, token redlock.Token, value int) error) error {
	w.t.Helper()
	require.NoError(w.t, w.data.Set(context.Background(), "stock", 10, 0).Err())
	a, b := w.guard("a", gate), w.guard("b", gate)

	inside := make(chan struct{})
	late := make(chan error)
	go func() {
		late <- a.Do(context.Background(), "sku:42", func(ctx context.Context, token redlock.Token) error {
			stock, err := w.data.Get(ctx, "stock").Int()
			if err != nil {
				return err
			}
			close(inside)
			w.pause("a", 2*ttl)
			// The write was on its way when the pause began: nothing looks at the context now.
			return set(context.WithoutCancel(ctx), token, stock-1)
		})
	}()
	<-inside
	err := b.Do(context.Background(), "sku:42", func(ctx context.Context, token redlock.Token) error {
		stock, err := w.data.Get(ctx, "stock").Int()
		if err != nil {
			return err
		}
		return set(ctx, token, stock-3)
	})
	require.NoError(w.t, err)
	require.Equal(w.t, "7", w.get("stock"))
	return <-late
}

func TestTheWriteOfAPausedHolderIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		err := w.pausedHolder(w.gate, func(ctx context.Context, token redlock.Token, value int) error {
			return w.gate.Set(ctx, "sku:42", token, "stock", value, 0)
		})
		var stale *fencing.StaleError
		require.ErrorAs(t, err, &stale)
		assert.Greater(t, stale.Seen, stale.Token)
		require.ErrorIs(t, err, redlock.ErrStaleToken)
		require.ErrorIs(t, err, redlock.ErrLeaseExpired, "the loss of the lease is told as well")
		assert.Equal(t, "7", w.get("stock"))
	})
}

// The test above can fail: without the gate the same run loses B's sale.
func TestWithoutTheGateTheWriteOfAPausedHolderLands(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		err := w.pausedHolder(allow, func(ctx context.Context, _ redlock.Token, value int) error {
			return w.data.Set(ctx, "stock", value, 0).Err()
		})
		require.ErrorIs(t, err, redlock.ErrLeaseExpired)
		require.NotErrorIs(t, err, redlock.ErrStaleToken)
		assert.Equal(t, "9", w.get("stock"))
	})
}

// A gate that only looks before the write is not enough: the pause comes after the look.
func TestAnAdmissionApartFromTheWriteIsNotEnough(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		err := w.pausedHolder(w.gate, func(ctx context.Context, _ redlock.Token, value int) error {
			return w.data.Set(ctx, "stock", value, 0).Err()
		})
		require.NotErrorIs(t, err, redlock.ErrStaleToken)
		assert.Equal(t, "9", w.get("stock"))
	})
}

// sellScript writes what its holder has computed from what it had read, and keeps a record.
const sellScript = `
redis.call('SET', KEYS[1], ARGV[1])
return redis.call('RPUSH', KEYS[2], ARGV[2])`

// sell has many workers on several machines sell units one by one; now and then a machine is
// paused in the middle of a sale. It returns what is wrong with the record.
func (w *world) sell(units int, guards []*fencing.Guard, write func(ctx context.Context, token redlock.Token, left int, entry string) error) (wrong []string) {
	w.t.Helper()
	ctx := context.Background()
	require.NoError(w.t, w.data.Set(ctx, "stock:{sku:1}", units, 0).Err())
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	soldOut := errors.New("sold out")
	var workers sync.WaitGroup
	for host, guard := range guards {
		for range 6 {
			workers.Go(func() {
				for {
					err := guard.Do(ctx, "sku:1", func(ctx context.Context, token redlock.Token) error {
						left, err := w.data.Get(ctx, "stock:{sku:1}").Int()
						if err != nil {
							return err
						}
						if left <= 0 {
							return soldOut
						}
						if draw(20) == 0 {
							w.pause(strconv.Itoa(host), ttl*3/2)
						} else {
							time.Sleep(time.Duration(draw(20)) * time.Millisecond)
						}
						return write(context.WithoutCancel(ctx), token, left-1, fmt.Sprint(int64(token), " ", left))
					})
					if errors.Is(err, soldOut) {
						return
					}
				}
			})
		}
	}
	workers.Wait()
	return w.audit(units)
}

// audit reads the record: every unit sold once, in the order of the tokens.
func (w *world) audit(units int) (wrong []string) {
	record, err := w.data.LRange(context.Background(), "sold:{sku:1}", 0, -1).Result()
	require.NoError(w.t, err)
	sold := map[int]int{}
	var last int64
	for _, entry := range record {
		var token int64
		var unit int
		_, err := fmt.Sscan(entry, &token, &unit)
		require.NoError(w.t, err)
		if sold[unit]++; sold[unit] > 1 {
			wrong = append(wrong, fmt.Sprintf("unit %d was sold %d times", unit, sold[unit]))
		}
		if token < last {
			wrong = append(wrong, fmt.Sprintf("token %d wrote after %d", token, last))
		}
		last = token
	}
	if left := w.get("stock:{sku:1}"); left != "0" || len(sold) != units {
		wrong = append(wrong, fmt.Sprintf("%d of %d units sold, %s left", len(sold), units, left))
	}
	return wrong
}

func (w *world) guards(n int, gate fencing.Gate) []*fencing.Guard {
	var guards []*fencing.Guard
	for i := range n {
		guards = append(guards, w.guard(strconv.Itoa(i), gate))
	}
	return guards
}

func TestNothingIsSoldTwiceWhoeverIsPausedWhen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		script, err := fencing.NewScript(sellScript)
		require.NoError(t, err)
		refused := 0
		var mu sync.Mutex
		wrong := w.sell(150, w.guards(3, w.gate), func(ctx context.Context, token redlock.Token, left int, entry string) error {
			err := w.gate.Run(ctx, "sku:1", token, script, []string{"stock:{sku:1}", "sold:{sku:1}"}, left, entry).Err()
			if errors.Is(err, fencing.ErrStaleToken) {
				mu.Lock()
				refused++
				mu.Unlock()
			}
			return err
		})
		assert.Empty(t, wrong)
		assert.Positive(t, refused, "no pause led to a late write: the test shows nothing")
	})
}

func TestWithoutTheGateUnitsAreSoldTwice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		script := redis.NewScript(sellScript)
		wrong := w.sell(150, w.guards(3, allow), func(ctx context.Context, _ redlock.Token, left int, entry string) error {
			return script.Run(ctx, w.data, []string{"stock:{sku:1}", "sold:{sku:1}"}, left, entry).Err()
		})
		assert.NotEmpty(t, wrong)
	})
}
