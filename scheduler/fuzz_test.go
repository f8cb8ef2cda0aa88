package scheduler

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

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

// idle makes a Locker whose nodes are never asked.
func idle(tb testing.TB) *redlock.Locker {
	tb.Helper()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	l, err := redlock.New([]redis.UniversalClient{client}, redlock.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	require.NoError(tb, err)
	tb.Cleanup(func() {
		_ = l.Close()
		_ = client.Close()
	})
	return l
}

func never(context.Context, Run) error { return nil }

// Whatever a spec says, and in whatever zone, Add refuses it or takes it; and then each tick comes
// after the time that was asked for, and is found in no time.
func FuzzSpec(f *testing.F) {
	for _, spec := range []string{
		"* * * * *", "*/10 * * * * *", "0 2 * * mon-fri", "@daily", "@every 90s", "@every 1ms", "@every 1h1ns", "@every", "@every ", "@every -1s", "@every 999999h",
		"CRON_TZ=Europe/Berlin 0 2 * * *", "TZ=UTC @hourly", "TZ=", "CRON_TZ=", "TZ=UTC", "TZ= * * * * *", "TZ=UTC TZ=", "CRON_TZ=UTC TZ=UTC", "TZ=UTC CRON_TZ=x * * * * *",
		"TZ=../../etc/passwd * * * * *", "TZ=Local @daily", "TZ=\x00 @daily", "TZ=UTC @every 5s", "0 0 30 2 *", "0 0 29 2 *", "0 0 31 2,4,6 *", "60 * * * *", "* * * * 8",
		"*/0 * * * *", "*/9223372036854775807 * * * *", "1-99999999999999999999 * * * *", "5-1 * * * *", "? ? ? ? ?", ",,,, * * * *", "1,2,3-5/2 */7 L * *", "@reboot", "@", "",
		" ", "\t", "* * * *", "* * * * * * *", "* * * * * \x00", "\xff * * * *", "0 0 * * SUN,sat", "@yearly", "@every 1.5s", "@every 5124095576030431h", "0/15 30 8-18 ? * 1#2",
	} {
		f.Add(spec, "UTC", int64(1_764_000_000))
		f.Add(spec, "America/Sao_Paulo", int64(1_289_000_000)) // clocks went forward at midnight there
		f.Add(spec, "Australia/Lord_Howe", int64(-5))          // and by half an hour here
	}
	f.Add("* * * * *", "Asia/Tokyo", int64(7_258_118_400)) // the year 2200
	f.Add("@every 7s", "UTC", int64(math.MaxInt32)*5)      // and 2310
	f.Add("@every 7s", "UTC", int64(-math.MaxInt32)*6)
	s, err := New(idle(f))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, spec, zone string, at int64) {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			return
		}
		fresh, err := New(s.locker)
		require.NoError(t, err)
		err = fresh.Add("job", spec, never, WithLocation(loc))
		j := fresh.job("job")
		if err != nil {
			require.ErrorIs(t, err, ErrInvalidSpec)
			return
		}
		const years = 1 << 34 // in seconds, about 540: beyond what nanoseconds since 1970 hold
		begin := time.Now()
		from := time.Unix(at%years, 0)
		for range 5 {
			next := j.schedule.Next(from)
			if next.IsZero() {
				break // not within five years
			}
			require.True(t, next.After(from), "%q: %v after %v", spec, next, from)
			require.True(t, next.Before(from.AddDate(6, 0, 1)), "%q: %v after %v", spec, next, from)
			require.Zero(t, next.Nanosecond()%int(time.Millisecond), "the register counts in milliseconds")
			from = next
		}
		if tick := j.schedule.Next(from); !tick.IsZero() {
			last, _ := crontab.Newest(j.schedule, tick.Add(-time.Millisecond), tick.Add(time.Hour))
			require.False(t, last.Before(tick))
			require.False(t, last.After(tick.Add(time.Hour)))
			var set ticks
			set.add(tick, j.schedule)
			require.True(t, set.has(tick))
		}
		require.Less(t, time.Since(begin), time.Minute, "%q in %s", spec, zone) // on a machine that does other things, too
	})
}

// Whatever is found under a job's name is read or refused; what is read is written back so that it
// means the same, and fits into a state; and a tick that is added is in it.
func FuzzRegister(f *testing.F) {
	r := register{Open: []open{{Tick: 5, Attempt: 1, By: "a", Token: 9}}, Settled: ticks{Floor: 2, Spans: []span{{3, 4}}}}
	f.Add(r.encode(), "a", int64(1_764_000_000))
	for _, state := range []string{
		"", "null", "{}", "[]", "0", `"v"`, `{"v":2}`, `{"v":1}`, `{"v":2.5}`, `{"v":2,"settled":{"spans":[[1]]}}`, `{"v":2,"settled":{"spans":[[9,1],[5,5],[2,3]]}}`,
		`{"v":2,"started":9223372036854775807,"settled":{"floor":9223372036854775807}}`, `{"v":2,"settled":{"spans":[[-9223372036854775808,9223372036854775807]]}}`,
		`{"v":2,"token":-1,"attempt":-1,"by":"` + strings.Repeat(`\u0000`, 600) + `"}`, `{"v":2}{"v":2}`, `{"v":2,"started":1e400}`, "\xff\xfe", `{"v":2,"by":"\ud800"}`,
		`{"v":2,"settled":{"spans":[` + strings.Repeat("[1,1],", 500) + `[1,1]]}}`, `{"v":2,"settled":null}`, `{"V":1,"STARTED":3}`,
	} {
		f.Add([]byte(state), strings.Repeat("\x00", maxIdentity), int64(1_764_000_000))
	}
	s, err := crontab.Parse("@every 2s", time.UTC, crontab.GapRunAfter, crontab.FoldOnce)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, state []byte, by string, at int64) {
		r, err := readRegister(state)
		if err != nil {
			require.ErrorIs(t, err, ErrRegister)
			return
		}
		if len(by) > maxIdentity || len(state) > redlock.MaxStateSize {
			return
		}
		again, err := readRegister(r.encode())
		require.NoError(t, err)
		require.Equal(t, r.Open, again.Open)
		require.Equal(t, r.Settled, again.Settled)
		tick := s.Next(time.Unix(at%(1<<33), 0))
		before := r.Settled.clone()
		if len(r.Open) == 0 {
			r.begin(open{Kind: Scheduled, Tick: tick.UnixMilli(), Attempt: 1, By: by})
		}
		r.Settled.add(tick, s)
		require.True(t, r.Settled.has(tick))
		for _, span := range before.Spans {
			for _, ms := range span {
				if span[0] <= ms && ms <= span[1] && ms > math.MinInt64/1000 && ms < math.MaxInt64/1000 {
					require.True(t, r.Settled.has(time.UnixMilli(ms)), "%d was in %v and is not in %v", ms, before, r.Settled)
				}
			}
		}
		require.LessOrEqual(t, len(r.encode()), redlock.MaxStateSize, "a job whose register does not fit never runs again")
	})
}

// Whatever the options say, New and Add return an error that tells what is wrong, or a job whose
// lease the Locker accepts.
func FuzzJobOptions(f *testing.F) {
	f.Add(int64(redlock.DefaultTTL), int64(DefaultTimeout), int64(DefaultStartDeadline), int64(DefaultDrainTimeout), "host:1", "job")
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), "i", "j")
	f.Add(int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), "", "")
	f.Add(int64(redlock.MinTTL), int64(math.MaxInt64), int64(math.MaxInt64), int64(0), strings.Repeat("i", 513), strings.Repeat("j", 513))
	f.Add(int64(redlock.MinTTL+999), int64(1), int64(1), int64(1), "\xff", "a}b")
	locker := idle(f)
	f.Fuzz(func(t *testing.T, ttl, timeout, deadline, drain int64, identity, name string) {
		s, err := New(locker, WithTTL(time.Duration(ttl)), WithTimeout(time.Duration(timeout)), WithStartDeadline(time.Duration(deadline)),
			WithDrainTimeout(time.Duration(drain)), WithIdentity(identity))
		if err != nil {
			require.ErrorIs(t, err, ErrInvalidOption)
			return
		}
		err = s.Add(name, "@daily", never)
		if err != nil {
			require.True(t, errors.Is(err, ErrInvalidJob) || errors.Is(err, redlock.ErrTTLTooLong), "%v", err)
			require.Less(t, len(err.Error()), 4000)
			return
		}
		j := s.jobs[name]
		tick := j.schedule.Next(time.Unix(1_764_000_000, 0))
		require.False(t, tick.IsZero())
		require.GreaterOrEqual(t, j.settings.window(), j.settings.startDeadline)
		require.GreaterOrEqual(t, j.settings.timeout, time.Duration(1))
	})
}
