package scheduler

import (
	"strings"

	"github.com/quorate/quorate/redlock"
)

// JobOf tells whether a name that the nodes know (redlock.Locker.List) is that of a job's register, and
// of which job. It goes by the name: a lock that is called "job/…" looks like a job, of which Status then
// says ErrUnknownJob or ErrRegister.
func JobOf(status redlock.Status) (job string, ok bool) {
	job, ok = strings.CutPrefix(status.Name, JobPrefix)
	if !ok || job == "" {
		return "", false
	}
	return job, true
}
