package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

func TestJobsAreToldFromOtherNames(t *testing.T) {
	for name, job := range map[string]string{
		"job/nightly": "nightly", "job/a/b": "a/b", "nightly": "", "control/nightly": "", "run/nightly/1": "", "job/": "",
	} {
		got, ok := scheduler.JobOf(redlock.Status{Name: name})
		require.Equal(t, job, got, name)
		require.Equal(t, job != "", ok, name)
	}
}
