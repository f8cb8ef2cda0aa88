package fencing

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// Two resources never share a fence, and a fence shares the hash slot of the data that is named as
// the documentation says.
func FuzzNoTwoResourcesShareAFence(f *testing.F) {
	names := []string{"sku:42", "{sku:42}", "=sku:42", "={sku:42}", "a{b}c", "a}b", "{}", "{}a", "{{a}}", "{a", "", "\x00", "a\n", "\xff", "quorate:gate:{a}", strings.Repeat("x", 512), strings.Repeat("x", 513), strings.Repeat("}\x10", 1000)}
	for i, name := range names {
		f.Add(DefaultKeyPrefix, name, names[(i+1)%len(names)])
		f.Add("=", name, names[0])
	}
	f.Fuzz(func(t *testing.T, prefix, first, second string) {
		if _, err := newRedisSettings([]RedisOption{WithKeyPrefix(prefix)}); err != nil {
			require.ErrorIs(t, err, redlock.ErrInvalidOption)
			return
		}
		var fences []string
		for _, resource := range []string{first, second} {
			err := checkTicket(resource, 1)
			var fence string
			if err == nil {
				fence, err = fenceKey(prefix, resource)
			}
			if err != nil {
				require.ErrorIs(t, err, redlock.ErrInvalidName)
				require.Less(t, len(err.Error()), 4000)
				continue
			}
			fences = append(fences, fence)
			require.Equal(t, hashTag(resource), hashTag(fence), "the key named like the resource %q", resource)
			require.NoError(t, checkSlots(fence, []string{resource, "data:{" + hashTag(resource) + "}"}))
		}
		if len(fences) == 2 && first != second {
			require.NotEqual(t, fences[0], fences[1], "%q and %q with prefix %q", first, second, prefix)
		}
	})
}

// says is a store that answers every command with one value.
type says struct {
	value any
	err   error
}

func (s says) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s says) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s says) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		if once, ok := cmd.(onceCmd); ok {
			cmd = once.Cmd
		}
		cmd.(*redis.Cmd).SetVal(s.value)
		cmd.SetErr(s.err)
		return s.err
	}
}

// storeError is an error that a store replies with.
type storeError string

func (e storeError) Error() string { return string(e) }
func (storeError) RedisError()     {}

// Whatever a store answers, nothing panics, an error stays one, a stale token is told as such, and a
// count is what the store said.
func FuzzGateReplies(f *testing.F) {
	for _, text := range []string{
		"STALETOKEN 7", "STALETOKEN ", "STALETOKEN", "STALETOKEN 9223372036854775808", "STALETOKEN -1", "STALETOKEN x y", "STALETOKENS 7",
		"BADFENCE x", "BADFENCE ", "NOSCRIPT no", "MOVED 1 :0", "ERR value is not an integer", "", "\x00", "WRONGTYPE kind",
	} {
		for kind := range uint8(9) {
			f.Add(text, int64(1), int64(math.MaxInt64), kind)
		}
	}
	f.Fuzz(func(t *testing.T, text string, first, second int64, kind uint8) {
		var s says
		switch kind % 9 {
		case 0:
			s.err = storeError(text)
		case 1:
			s.value = text
		case 2:
			s.value = first
		case 3:
			s.value = []any{first, second}
		case 4:
			s.value = []any{first}
		case 5:
			s.value = []any{text, nil, second}
		case 6:
			s.value = map[any]any{text: first}
		case 7:
			s.value = []any{[]any{first}, second}
		case 8:
			s.value = float64(first)
		}
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		defer client.Close()
		client.AddHook(s)
		gate, err := NewRedisGate(client)
		require.NoError(t, err)
		ctx := t.Context()
		script, err := NewScript("return 1")
		require.NoError(t, err)
		n, countErr := gate.IncrBy(ctx, "r", 5, "n", 1, 0)
		for _, err := range []error{
			gate.Admit(ctx, "r", 5), gate.Set(ctx, "r", 5, "k", "v", 0), gate.HSet(ctx, "r", 5, "h", map[string]any{"f": 1}),
			gate.Run(ctx, "r", 5, script, nil).Err(), countErr,
		} {
			if s.err == nil {
				continue
			}
			require.Error(t, err)
			stale := strings.HasPrefix(text, "STALETOKEN ")
			require.Equal(t, stale, errors.Is(err, ErrStaleToken), "%q", text)
			var detail *StaleError
			if errors.As(err, &detail) {
				require.GreaterOrEqual(t, detail.Seen, redlock.Token(0))
			}
		}
		if countErr == nil {
			require.Equal(t, uint8(3), kind%9, "a count is two numbers")
			require.Equal(t, int64(1), first)
			require.Equal(t, second, n)
		}
	})
}

// Whatever the options say, constructors return an error that tells what is wrong, or what works.
func FuzzGuardOptions(f *testing.F) {
	f.Add(int64(0), int64(DefaultHoldLimit), int64(0), DefaultKeyPrefix, int64(redlock.DefaultTTL), int64(0))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), "p", int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), "", int64(math.MinInt64), int64(math.MinInt64))
	f.Add(int64(1), int64(1), int64(MinFenceTTL), "a{b}", int64(time.Hour), int64(time.Second))
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	locker, err := redlock.New([]redis.UniversalClient{client}, redlock.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	require.NoError(f, err)
	defer locker.Close()
	f.Fuzz(func(t *testing.T, wait, hold, fenceTTL int64, prefix string, ttl, margin int64) {
		gate, err := NewRedisGate(client, WithFenceTTL(time.Duration(fenceTTL)), WithKeyPrefix(prefix))
		if err != nil {
			require.ErrorIs(t, err, redlock.ErrInvalidOption)
			gate, err = NewRedisGate(client)
			require.NoError(t, err)
		}
		lease := []redlock.LeaseOption{redlock.WithTTL(time.Duration(ttl)), redlock.WithMargin(time.Duration(margin))}
		_, err = NewGuard(locker, gate, WithWaitLimit(time.Duration(wait)), WithHoldLimit(time.Duration(hold)), WithLease(lease...))
		if refused := locker.Validate("resource", lease...); refused != nil {
			require.Error(t, err, "every Do would say: %v", refused)
		}
		if err != nil {
			require.True(t, wait < 0 || hold < 0 || locker.Validate("resource", lease...) != nil, "%v", err)
		}
	})
}
