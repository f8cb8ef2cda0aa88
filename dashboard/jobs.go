package dashboard

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

const (
	maxJobs   = 5_000 // that are kept
	jobsShown = 200
	jobsAsked = 100 // after one listing: those that changed, and then those that were asked about longest ago
	askers    = 8   // at the same time
	nextTicks = 3
)

// ledgers are what is known of the jobs.
type ledgers struct {
	mu    sync.Mutex
	byJob map[string]*ledger
	total int // in the last listing
}

// A ledger is what is known of one job.
type ledger struct {
	job    string
	token  redlock.Token // of the last listing
	known  bool          // the status was had at least once
	status scheduler.Status
	err    error
	asked  time.Time
	about  redlock.Token // the token when it was asked about
	hurry  bool          // somebody has just changed it
}

// A jobRow is what the page is told of a job.
type jobRow struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Known       bool     `json:"known"` // what follows is known
	Paused      bool     `json:"paused,omitempty"`
	PausedSince int64    `json:"pausedSince,omitempty"`
	PausedBy    string   `json:"pausedBy,omitempty"`
	Waiting     int      `json:"waiting,omitempty"`
	Runs        []runRow `json:"runs,omitempty"` // oldest first
	Local       bool     `json:"local,omitempty"`
	Next        []int64  `json:"next,omitempty"` // of a job of this process
	Err         string   `json:"err,omitempty"`
	Asked       int64    `json:"asked,omitempty"` // when the rest was known last; only with Err
}

// A runRow is a line of a job's ledger.
type runRow struct {
	Kind      string        `json:"kind"`
	Scheduled int64         `json:"scheduled"`
	Ticks     int           `json:"ticks"`
	Outcome   string        `json:"outcome"`
	Reason    string        `json:"reason,omitempty"`
	Started   int64         `json:"started,omitempty"`
	Ended     int64         `json:"ended,omitempty"`
	Replica   string        `json:"replica,omitempty"`
	Token     redlock.Token `json:"token,omitempty"`
	Attempt   int           `json:"attempt,omitempty"`
	Err       string        `json:"err,omitempty"`
}

// listed takes over which jobs there are. Those that are gone are forgotten, as the nodes have.
func (l *ledgers) listed(jobs map[string]redlock.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byJob == nil {
		l.byJob = map[string]*ledger{}
	}
	l.total = len(jobs)
	maps.DeleteFunc(l.byJob, func(job string, _ *ledger) bool {
		_, there := jobs[job]
		return !there
	})
	for job, token := range jobs {
		known := l.byJob[job]
		if known == nil {
			if len(l.byJob) >= maxJobs {
				continue
			}
			known = &ledger{job: job}
			l.byJob[job] = known
		}
		known.token = token
	}
}

func (l *ledgers) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// hurry has a job asked about next.
func (l *ledgers) hurry(job string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.byJob[job]; known != nil {
		known.hurry = true
	}
}

// next gives the jobs to ask about: those that somebody has changed from here, those whose lease was had
// since, and then those that were asked about longest ago.
func (l *ledgers) next() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	urgency := func(j *ledger) int {
		switch {
		case j.hurry:
			return 0
		case j.about != j.token:
			return 1
		default:
			return 2
		}
	}
	all := slices.SortedFunc(maps.Values(l.byJob), func(a, b *ledger) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), a.asked.Compare(b.asked), strings.Compare(a.job, b.job))
	})
	var jobs []string
	for _, j := range all[:min(len(all), jobsAsked)] {
		j.hurry, j.about = false, j.token
		jobs = append(jobs, j.job)
	}
	return jobs
}

// learned takes over what was said of a job. After an error, what was known before stays.
func (l *ledgers) learned(job string, status scheduler.Status, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.byJob[job]
	if j == nil {
		return
	}
	j.err = err
	if err == nil {
		j.known, j.status, j.asked = true, status, time.Now()
	}
}

// lookAtJobs asks about some jobs, a few at the same time.
func (h *Handler) lookAtJobs(ctx context.Context) {
	jobs := make(chan string)
	var asking sync.WaitGroup
	for range askers {
		asking.Go(func() {
			for job := range jobs {
				status, err := h.jobs.Status(ctx, job)
				if ctx.Err() == nil {
					h.ledgers.learned(job, status, err)
				}
			}
		})
	}
	for _, job := range h.ledgers.next() {
		jobs <- job
	}
	close(jobs)
	asking.Wait()
	if ctx.Err() == nil {
		h.showJobs()
	}
}

func (h *Handler) showJobs() {
	l := &h.ledgers
	l.mu.Lock()
	all := slices.SortedFunc(maps.Values(l.byJob), func(a, b *ledger) int {
		return cmp.Or(cmp.Compare(b.trouble(), a.trouble()), strings.Compare(a.job, b.job))
	})
	shown := all[:min(len(all), jobsShown)]
	slices.SortFunc(shown, func(a, b *ledger) int { return strings.Compare(a.job, b.job) })
	items := make([]item, len(shown))
	for i, j := range shown {
		row := j.row()
		row.Next, row.Local = h.nextOf(j.job)
		items[i] = item{row.ID, row}
	}
	l.mu.Unlock()
	h.board.put(jobsSection, items)
}

// trouble is 1 where a job needs somebody's attention, and so is shown before those that do not.
func (j *ledger) trouble() int {
	if j.err != nil || j.status.Paused || j.status.Waiting > 0 {
		return 1
	}
	if n := len(j.status.History); n > 0 {
		switch j.status.History[n-1].Outcome {
		case scheduler.Ran, scheduler.Running:
		default:
			return 1
		}
	}
	return 0
}

// nextOf is when a job of this process comes due next.
func (h *Handler) nextOf(job string) (next []int64, local bool) {
	ticks, err := h.jobs.Next(job, nextTicks)
	if err != nil {
		return nil, false
	}
	for _, t := range ticks {
		next = append(next, stamp(t))
	}
	return next, true
}

func (j *ledger) row() jobRow {
	row := jobRow{
		ID: idOf(j.job), Name: show(j.job), Known: j.known, Paused: j.status.Paused, PausedSince: stamp(j.status.PausedSince),
		PausedBy: brief(j.status.PausedBy), Waiting: j.status.Waiting,
	}
	if j.err != nil {
		row.Err, row.Asked = explain(j.err), stamp(j.asked)
	}
	if errors.Is(j.err, redlock.ErrNoQuorum) {
		row.Err = "too few nodes answer" // which ones is said of the nodes
	}
	for i := range j.status.History {
		r := &j.status.History[i]
		row.Runs = append(row.Runs, runRow{
			Kind: brief(string(r.Kind)), Scheduled: stamp(r.Scheduled), Ticks: r.Ticks, Outcome: brief(string(r.Outcome)),
			Reason: brief(string(r.Reason)), Started: stamp(r.Started), Ended: stamp(r.Ended), Replica: brief(r.Replica),
			Token: r.Token, Attempt: r.Attempt, Err: brief(r.Err),
		})
	}
	return row
}
