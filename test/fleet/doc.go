// Fleet runs the layers above the lease as users run them, with replicas that are processes and
// five real redis-servers, and measures what happens when a replica goes.
//
//	go run ./fleet leaders -rounds 30 -ttl 2s  # an election: how long until the next one leads
//	go run ./fleet cron -ticks 200             # a crontab: is every tick run, and run once
//
// # leaders
//
// Three candidates. In each round the leader resigns, or is killed, or is paused between its last
// look at its term and a write, for longer than the TTL, or is cut off from all nodes. Measured is
// the time from there until the leading function of another candidate is called. Checked is that no
// two terms were valid at one time, and that the gate refuses the write of each leader that was
// paused, and admits no token after a higher one.
//
// A term is valid from the call of its function to the end of its validity as the lease tells it,
// or until the function saw its context end, whichever comes first. A process that is paused is not
// asked what it believes: the clock ends its term, and the gate is there for what it still writes.
//
// # cron
//
// Three replicas, each with a wall clock that is so much ahead of the one before it, started one
// after the other. Each has two jobs at one tick a second, one at most once and one at least once,
// and a run takes 200 ms. Every ten ticks the replica in which a run has just begun is killed, and
// started again; half way through, all are restarted one after the other as a deployment does. At
// the end, each tick of the first job has to have been started once, and each of the second
// completed once, by the gate's account; none may be lost.
//
// The same is done with gocron and a lock by redsync on one of the servers: the locker that
// gocron's own package for Redis has, with the options that its README gives; and with gocron and
// the locker of scheduler/gocron. gocron does not tell a run for which tick it is, so that is taken
// to be the second to which the replica's clock is nearest.
//
// Times are those of the machine's monotonic clock, which all processes share.
package main
