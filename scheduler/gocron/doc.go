// Package gocronlock lets jobs of gocron (github.com/go-co-op/gocron/v2) run once across the
// replicas of a service, by leases that a majority of Redis masters grants: a [Locker], by which
// whichever replica comes first runs a tick, and an [Elector], by which only the leader runs ticks.
// Neither makes gocron know which tick a run is for, repeats or makes up for a run that was
// lost, or ends a run whose lease has ended: see "What it cannot do". A service that does not
// depend on gocron is better served by package scheduler, which does all of that.
//
//	locker, err := gocronlock.NewLocker(leases, gocronlock.WithInterval(time.Minute))
//	sched, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	job, err := sched.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(report), gocron.WithName("report"))
//
// # The interval
//
// gocron asks a locker for a name, the job's, and nothing else. A lock by that name alone keeps two
// runs from overlapping, but not a tick from being run twice: a replica that asks when the first
// has finished gets the lock as well, which with short runs is what happens, for each replica, at
// every tick (gocron #841). So what is claimed here is the name and a time. The lease of a name
// carries, as its state, the times of its last 256 claims, each by the wall clock of the replica
// that made it, when gocron asked. Who asks at a time that is less than three quarters of an
// interval from any of them is refused, with [ErrClaimed]: to him it is the same tick.
//
// So the interval has to be that of the job, the shortest one between two of its ticks, and the
// same in all replicas. The default is a second, the shortest that a crontab has; a job that comes
// due every five minutes is far better off with five minutes. Jobs with different intervals
// have Lockers of their own, by gocron.WithDistributedJobLocker. The Lockers of a process share
// one redlock.Locker.
//
// # What it does
//
//   - Each tick is run once at most, if replicas ask for it less than three quarters of an interval
//     late. This holds though their clocks differ, for ticks at fixed times (gocron.CronJob), up to
//     the time that 256 claims span: 4 minutes for a job that runs each second. The list outlives its
//     last use by redlock.WithFenceTTL, 24 hours by default.
//   - Of a gocron.DurationJob, whose ticks each replica counts from its own start, one is run in each
//     interval or a little less: no two are closer than three quarters of it. There, clocks
//     count, and should be right to a few hundredths of the interval.
//   - Runs of a job do not overlap. The lease is extended for as long as the run lasts
//     (gocron-redis-lock #54), within [WithTimeout], and released when it ends, also where gocron's
//     own context has ended. A replica that dies is followed by another after a TTL.
//   - When all replicas ask in the same moment, and nobody gets a majority, they ask again at once.
//   - Clocks, nodes and networks may fail as package redlock allows.
//
// # What it cannot do
//
//   - A tick whose replica died in the run, or between the claim and the run, is lost. gocron does
//     not know of it, and the others have moved on.
//   - A tick that comes due while the run of an earlier one goes on, anywhere, is waited for by
//     half an interval at most, then lost. So is one at which no majority of nodes can be reached.
//   - A run is not told that its lease has ended. gocron gives it a context of its own. The function
//     has to look itself: [Locker.Lease] gives the lease that it runs under, with a context
//     and a fencing token for a gate at the resource. Without a gate a replica that was paused may write
//     late.
//   - A replica that asks three quarters of an interval after another for one tick runs it again,
//     and one that claims a tick more than a quarter of an interval late costs the next one. With jobs
//     that run each second that is 250 ms. The function is not told its tick, and has only the
//     clock to go by.
//   - With an Elector, what comes due between two leaders is lost, and a run that is under way when a
//     term ends goes on beside those of the next leader.
//
// Package scheduler gives each run its scheduled time, token and context, keeps a register of
// ticks by their times rather than by when they were asked for, takes over what a dead replica has
// left, and is simulated and soaked under faults.
package gocronlock
