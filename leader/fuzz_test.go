package leader

import (
	"encoding/json"
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

// Whatever is saved under an election, it is a leader's record only if it says that it is that of the
// lease's holder; and what a leader publishes is read as it was, and fits into a state.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"lease":"XK3","leader":"a","number":7,"since":"2026-11-21T00:00:00Z"}`), "a/XK3", "a", int64(7), int64(1_764_000_000))
	f.Add([]byte(`{"v":2,"lease":"XK3","leader":"a","number":7,"phase":"leading","labels":{"a":"b"},"heir":"b","state":"AAE="}`), "a/XK3", "a", int64(7), int64(0))
	f.Add([]byte(`{"v":99,"lease":"XK3","number":7,"phase":"another","labels":3}`), "a/XK3", "a", int64(7), int64(0))
	for _, state := range []string{
		"", "null", "{}", "[]", `{"lease":"XK3"}`, `{"lease":""}`, `{"lease":3}`, `{"lease":"XK3","number":-1}`, `{"lease":"XK3","number":1e99}`, `{"lease":"XK3","since":"then"}`,
		`{"LEASE":"XK3"}`, `{"lease":"XK3"}{}`, "\xff", `{"lease":"\ud800"}`, `{"lease":"XK3","leader":null}`,
	} {
		f.Add([]byte(state), "a/XK3", strings.Repeat("\x00", MaxIdentityLength), int64(math.MaxInt64), int64(253_402_300_800))
		f.Add([]byte(state), "", "a/b", int64(-1), int64(-1))
	}
	f.Fuzz(func(t *testing.T, state []byte, holder, identity string, number, since int64) {
		r, ok := recordOf(redlock.Status{Holder: holder, State: state})
		if ok {
			require.Equal(t, nonceOf(holder), r.Lease)
			require.Positive(t, r.Number)
			require.True(t, json.Valid(state))
		}
		id := identityOf(holder)
		if id != holder {
			require.Equal(t, holder, id+"/"+nonceOf(holder))
		}

		if validIdentity(identity) != nil || number <= 0 {
			return
		}
		want := record{
			Version: recordVersion, Lease: "XK3", Leader: identity, Number: redlock.Token(number), Since: time.Unix(since%(1<<37), 0).UTC(),
			Phase: ended, Labels: map[string]string{identity: identity}, State: state,
		}
		text, err := json.Marshal(want)
		if err != nil {
			require.Greater(t, want.Since.Year(), 9999)
			return
		}
		if len(state) == 0 {
			want.State = nil
		}
		got, ok := recordOf(redlock.Status{Holder: identity + "/XK3", State: text})
		require.True(t, ok)
		require.Equal(t, want, got)
	})
}

// Whatever the options say, New returns an error that tells what is wrong, or an Elector whose lease
// the Locker accepts and whose pauses are no shorter than nothing.
func FuzzElectorOptions(f *testing.F) {
	f.Add("billing", int64(DefaultTTL), int64(0), int64(time.Hour), int64(time.Second), "a", int64(redlock.DefaultMaxTTL))
	f.Add("", int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), "", int64(math.MaxInt64))
	f.Add("a}b", int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), "\xff", int64(math.MinInt64))
	f.Add("x", int64(redlock.MinTTL), int64(redlock.MinTTL/2), int64(0), int64(0), strings.Repeat("i", 513), int64(365*24*time.Hour))
	f.Add("x", int64(365*24*time.Hour), int64(0), int64(-1), int64(1), "i", int64(365*24*time.Hour))
	f.Add(strings.Repeat("x", 10_000), int64(redlock.MinTTL), int64(0), int64(0), int64(0), "", int64(redlock.MinTTL))
	f.Add("x", int64(100*365*24*time.Hour), int64(0), int64(-1), int64(1), "i", int64(100*365*24*time.Hour))
	f.Fuzz(func(t *testing.T, name string, ttl, margin, term, pause int64, identity string, maxTTL int64) {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		defer client.Close()
		locker, err := redlock.New([]redis.UniversalClient{client}, redlock.WithMaxTTL(time.Duration(maxTTL)), redlock.WithFenceTTL(math.MaxInt64),
			redlock.WithTTL(redlock.MinTTL), redlock.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		if err != nil {
			return
		}
		defer locker.Close()
		opts := []Option{WithTTL(time.Duration(ttl)), WithMargin(time.Duration(margin)), WithResignPause(time.Duration(pause)), WithIdentity(identity)}
		if term != -1 { // or the default
			opts = append(opts, WithMaxTerm(time.Duration(term)), WithStopGrace(time.Duration(term)))
		}
		e, err := New(locker, name, opts...)
		if err != nil {
			for _, known := range []error{redlock.ErrInvalidOption, redlock.ErrInvalidName, redlock.ErrTTLTooLong, redlock.ErrTTLTooShort} {
				if errors.Is(err, known) {
					require.Less(t, len(err.Error()), 10_000)
					return
				}
			}
			require.NoError(t, err)
		}
		require.Positive(t, e.settings.extensions())
		retry := newBackoff(e.settings.ttl)
		for range 10 {
			for _, outcome := range []outcome{failed, resigned, transferred, unhealthy, steppedDown} {
				require.GreaterOrEqual(t, e.pause(ending{outcome: outcome, lasted: time.Second}, retry), time.Duration(0))
			}
		}
	})
}
