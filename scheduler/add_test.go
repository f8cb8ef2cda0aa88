package scheduler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

func nothing(context.Context, scheduler.Run) error { return nil }

func TestAJobThatCannotWorkIsRefusedWithTheReason(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for _, test := range []struct {
			name, job, spec string
			fn              func(context.Context, scheduler.Run) error
			opts            []scheduler.JobOption
			want            error
			says            string
		}{
			{"no name", "", "@daily", nothing, nil, scheduler.ErrInvalidJob, "no name"},
			{"a name that is too long", strings.Repeat("x", 600), "@daily", nothing, nil, scheduler.ErrInvalidJob, "600 bytes"},
			{"a name with a brace", "a}", "@daily", nothing, nil, scheduler.ErrInvalidJob, "hash tag"},
			{"a name twice", "twice", "@daily", nothing, nil, scheduler.ErrDuplicateJob, `"twice"`},
			{"no function", "j", "@daily", nil, nil, scheduler.ErrInvalidJob, "function is nil"},
			{"no spec", "j", " ", nothing, nil, scheduler.ErrInvalidSpec, "empty"},
			{"too few fields", "j", "* * *", nothing, nil, scheduler.ErrInvalidSpec, "3 fields"},
			{"minute 60", "j", "60 * * * *", nothing, nil, scheduler.ErrInvalidSpec, "above maximum (59)"},
			{"the message has examples", "j", "daily", nothing, nil, scheduler.ErrInvalidSpec, `"0 2 * * *"`},
			{"an unknown descriptor", "j", "@dayly", nothing, nil, scheduler.ErrInvalidSpec, "none of @hourly"},
			{"a day that never is", "j", "0 0 30 2 *", nothing, nil, scheduler.ErrInvalidSpec, "does not come due"},
			{"a field that is empty", "j", "0 , * * *", nothing, nil, scheduler.ErrInvalidSpec, "nothing between"},
			{"an unknown zone", "j", "CRON_TZ=Europe/Bielefeld 0 2 * * *", nothing, nil, scheduler.ErrInvalidSpec, "Bielefeld"},
			{"a zone without a spec", "j", "TZ=Europe/Berlin", nothing, nil, scheduler.ErrInvalidSpec, "nothing follows"},
			{"an empty zone", "j", "TZ= 0 2 * * *", nothing, nil, scheduler.ErrInvalidSpec, "no time zone"},
			{"no interval", "j", "@every", nothing, nil, scheduler.ErrInvalidSpec, "no interval"},
			{"an interval that is no duration", "j", "@every day", nothing, nil, scheduler.ErrInvalidSpec, "no interval like"},
			{"a short interval", "j", "@every 500ms", nothing, nil, scheduler.ErrInvalidSpec, "not between 1s"},
			{"a negative interval", "j", "@every -5s", nothing, nil, scheduler.ErrInvalidSpec, "not between 1s"},
			{"a fine interval", "j", "@every 1000001us", nothing, nil, scheduler.ErrInvalidSpec, "multiple of 1ms"},
			{"no timeout", "j", "@daily", nothing, []scheduler.JobOption{scheduler.WithTimeout(0)}, scheduler.ErrInvalidOption, "timeout"},
			{"a negative deadline", "j", "@daily", nothing, []scheduler.JobOption{scheduler.WithStartDeadline(-1)}, scheduler.ErrInvalidOption, "start deadline"},
			{"no location", "j", "@daily", nothing, []scheduler.JobOption{scheduler.WithLocation(nil)}, scheduler.ErrInvalidOption, "location"},
			{"a short TTL", "j", "@daily", nothing, []scheduler.JobOption{scheduler.WithTTL(time.Millisecond)}, scheduler.ErrInvalidOption, "TTL 1ms"},
			{"a TTL that the fleet refuses", "j", "@daily", nothing, []scheduler.JobOption{scheduler.WithTTL(time.Minute)}, redlock.ErrTTLTooLong, "1m0s"},
			{"a nil option", "j", "@daily", nothing, []scheduler.JobOption{nil}, scheduler.ErrInvalidOption, "nil JobOption"},
		} {
			r := w.replica("r")
			require.NoError(t, r.sched.Add("twice", "@daily", nothing))
			err := r.sched.Add(test.job, test.spec, test.fn, test.opts...)
			require.ErrorIs(t, err, test.want, test.name)
			require.ErrorContains(t, err, test.says, test.name)
			require.ErrorContains(t, err, "scheduler: add job", test.name)
		}
		for node := range w.fleet.Len() {
			assert.Zero(t, w.fleet.Commands(node), "Add asks the nodes for nothing")
		}
	})
}

func TestSpecsOfAllKindsAreAccepted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("r")
		for _, spec := range []string{
			"* * * * *", "*/15 * * * * *", "0 2 * * mon-fri", "0 0 29 2 *", "@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually",
			"@every 90s", "@every 1.5s", " @every  24h ", "CRON_TZ=America/New_York 30 4 * * *", "TZ=UTC @daily", "CRON_TZ=Asia/Tokyo @every 1h",
		} {
			assert.NoError(t, r.sched.Add("job "+spec, spec, nothing), spec)
		}
	})
}

func TestASchedulerThatCannotWorkIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_, err := scheduler.New(nil)
		require.ErrorIs(t, err, scheduler.ErrInvalidOption)
		locker := w.replica("r").locker
		for name, opt := range map[string]scheduler.Option{
			"a nil Option":  nil,
			"identity":      scheduler.WithIdentity(""),
			"0 bytes":       scheduler.WithIdentity(""),
			"10000 bytes":   scheduler.WithIdentity(strings.Repeat("x", 10000)),
			"drain timeout": scheduler.WithDrainTimeout(-time.Second),
			"timeout -1s":   scheduler.WithTimeout(-time.Second),
			"location":      scheduler.WithLocation(nil),
		} {
			_, err := scheduler.New(locker, opt)
			require.ErrorIs(t, err, scheduler.ErrInvalidOption)
			require.ErrorContains(t, err, name)
		}
	})
}

// A fleet with a short maximum TTL needs WithTTL for each job, and for nothing else.
func TestJobsWithAShortTTLWorkOnAFleetThatAllowsNoLongerOne(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("a")
		short := redlock.WithTTL(2 * time.Second)
		locker, err := redlock.New(r.host.Clients(), redlock.WithClock(r.clock), redlock.WithLogger(quiet()), redlock.WithMaxTTL(2*time.Second), short)
		require.NoError(t, err)
		defer func() { require.NoError(t, locker.Close()) }()
		sched, err := scheduler.New(locker, scheduler.WithClock(r.clock), scheduler.WithLogger(quiet()))
		require.NoError(t, err)
		require.ErrorIs(t, sched.Add("long", "@yearly", nothing), redlock.ErrTTLTooLong)
		ran := make(chan struct{}, 1)
		require.NoError(t, sched.Add("short", "@yearly", func(context.Context, scheduler.Run) error {
			ran <- struct{}{}
			return nil
		}, scheduler.WithTTL(2*time.Second)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- sched.Run(ctx) }()
		require.NoError(t, sched.Trigger(t.Context(), "short"))
		<-ran
		cancel()
		require.NoError(t, <-ended)
	})
}
