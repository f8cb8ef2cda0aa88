package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
)

// Checks of a node.
const (
	checkReach       = "reach"
	checkLatency     = "latency"
	checkVersion     = "version"
	checkRole        = "role"
	checkUptime      = "uptime"
	checkPersistence = "persistence"
	checkMemory      = "memory"
	checkWrites      = "writes"
	checkClock       = "clock"
	checkRights      = "rights"
	checkVote        = "vote"
)

const (
	pings = 20
	// allAnswers is how many times the limit of one answer all may take.
	allAnswers = 5
	// A node whose answers take this share of the time after which it is suspect is on the edge of it.
	slowShare = 4
	// A node whose memory is used up to here, in percent, is soon to refuse what is written.
	fullPercent = 90
)

// examine makes all checks of a server. Behind the first that finds that it does not answer, there are none.
func (p *patient) examine(ctx context.Context) {
	// Each answer has its own limit; a server that always stays just below it is not followed to the end.
	ctx, cancel := context.WithTimeout(ctx, allAnswers*p.exam.timeout)
	defer cancel()
	if !p.reach(ctx) {
		return
	}
	p.askInfo(ctx)
	if p.info != nil {
		p.version()
		p.role()
		p.uptime()
		p.persistence(ctx)
		p.memory()
	}
	p.rights(ctx)
	p.vote()
}

// ask bounds one question.
func (p *patient) ask(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.exam.timeout)
}

// reach tries whether the server answers, and how fast.
func (p *patient) reach(ctx context.Context) bool {
	var took []time.Duration
	for began := time.Now(); len(took) <= pings && (len(took) < 2 || time.Since(began) < p.exam.timeout); {
		asked := time.Now()
		within, cancel := p.ask(ctx)
		err := p.client.Ping(within).Err()
		cancel()
		if err != nil && !isRefusal(err) {
			found, advice := unreachable(err, p.exam.timeout)
			if len(took) == 0 {
				if wrong, mend, ok := p.mistaken(ctx); ok {
					found, advice = wrong, mend
				}
			} else {
				found = fmt.Sprintf("it has answered %s, and then did not: %s", count(len(took), "time"), found)
			}
			p.found(bad, checkReach, advice, "%s", found)
			return false
		}
		took = append(took, time.Since(asked))
	}
	connect, took := took[0], took[1:]
	slices.Sort(took)
	median, longest := took[len(took)/2], took[len(took)-1]
	p.found(good, checkReach, "", "answers; the first time, with the connection, after %s", precise(connect))
	told := fmt.Sprintf("a round trip takes %s, and %s at most of %d", precise(median), precise(longest), len(took))
	limit := min(redlock.DefaultNodeTimeout, p.exam.ttl/4)
	switch {
	case median > limit:
		p.found(bad, checkLatency, "bring the node nearer, or raise WithNodeTimeout and the TTL in the service", "%s: more than the %s after which a node is left alone", told, limit)
	case median > limit/slowShare || longest > limit:
		p.found(warning, checkLatency, "look at its load, at SLOWLOG GET, and at the network", "%s: not far from the %s after which a node is left alone", told, limit)
	default:
		p.found(good, checkLatency, "", "%s", told)
	}
	return true
}

// precise is a short duration for people.
func precise(d time.Duration) string {
	if d < 10*time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// isRefusal reports whether the server has answered, be it with a refusal.
func isRefusal(err error) bool { return strings.HasPrefix(err.Error(), "NOPERM") }

func (p *patient) askInfo(ctx context.Context) {
	within, cancel := p.ask(ctx)
	defer cancel()
	pipe := p.client.Pipeline()
	var sections []*redis.StringCmd
	for _, name := range []string{"server", "replication", "memory", "persistence", "cluster"} {
		sections = append(sections, pipe.Info(within, name))
	}
	asked := time.Now()
	_, _ = pipe.Exec(within) // each is looked at below
	took := time.Since(asked)
	for i, section := range sections {
		text, err := section.Result()
		if err != nil {
			if i == 0 {
				if !isRefusal(err) {
					p.found(bad, checkVersion, "see that it is a Redis server", "does not say who it is: %v", err)
				}
				return // a right that is missing is told with the others
			}
			continue
		}
		if p.info == nil {
			p.info = map[string]string{}
		}
		for line := range strings.Lines(text) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				p.info[key] = value
			}
		}
	}
	if micros, err := strconv.ParseInt(p.info["server_time_usec"], 10, 64); err == nil {
		p.clock = &offset{ahead: time.UnixMicro(micros).Sub(asked.Add(took / 2)), doubt: took / 2}
	}
}

func (p *patient) version() {
	v := p.info["redis_version"]
	var major, minor int
	if n, _ := fmt.Sscanf(v, "%d.%d", &major, &minor); n < 2 {
		p.found(warning, checkVersion, "use Redis 6.2 or newer", "does not tell a version (%q)", v)
		return
	}
	if major < 6 || major == 6 && minor < 2 {
		p.found(bad, checkVersion, "use Redis 6.2 or newer", "is version %s, which lacks what the scripts need", v)
		return
	}
	p.found(good, checkVersion, "", "is version %s", v)
}

func (p *patient) role() {
	if p.info["cluster_enabled"] == "1" && !p.inShards {
		p.found(bad, checkRole, "write its URL as cluster+redis://…, or use a server that is none", "is a server of a Redis Cluster, and is used as if it were alone")
		return
	}
	switch role := p.info["role"]; role {
	case "master":
	case "":
		p.found(warning, checkRole, "see that it is a master", "does not tell its role")
		return
	default:
		p.found(bad, checkRole, "use masters only, which are independent of each other; REPLICAOF NO ONE makes it one", "is a %s of %s:%s", role, p.info["master_host"], p.info["master_port"])
		return
	}
	if replicas, _ := strconv.Atoi(p.info["connected_slaves"]); replicas > 0 {
		p.found(warning, checkRole, "detach them: a failover to one would lose locks", "is a master with %s", count(replicas, "connected replica"))
		return
	}
	p.found(good, checkRole, "", "is a master without replicas")
}

func (p *patient) uptime() {
	seconds, _ := strconv.ParseInt(p.info["uptime_in_seconds"], 10, 64)
	up := time.Duration(seconds) * time.Second
	if p.report != nil && p.report.Quarantine > 0 {
		p.found(warning, checkUptime, "nothing is to be done but to wait", "is up for %s and may have forgotten locks: its votes do not count for another %s", up, brief(p.report.Quarantine))
		return
	}
	p.found(good, checkUptime, "", "is up for %s", up)
}

// persistence matters only where the restart rule is switched off.
func (p *patient) persistence(ctx context.Context) {
	aof := map[string]string{"0": "no", "1": "yes"}[p.info["aof_enabled"]]
	fsync := ""
	if within, cancel := p.ask(ctx); true {
		config := p.client.ConfigGet(within, "appendfsync")
		cancel()
		fsync = config.Val()["appendfsync"] // the right to ask is not among those that the library needs
	}
	told := "appendonly " + orUnknown(aof) + ", appendfsync " + orUnknown(fsync)
	switch {
	case p.info["rdb_last_bgsave_status"] == "err":
		p.found(warning, checkPersistence, "look at the disk and the server's log; without need of snapshots, CONFIG SET save \"\"", "the last snapshot has failed: with stop-writes-on-bgsave-error, which is the default, it refuses all locks")
	case p.info["aof_last_write_status"] == "err":
		p.found(bad, checkPersistence, "look at the disk and the server's log", "cannot write its append-only file, and refuses all locks")
	case !p.exam.trustsDisks:
		p.found(good, checkPersistence, "", "%s; leases need none, since votes do not count for %s after a restart; where there are jobs, appendonly yes keeps their records through a restart of all nodes", told, p.exam.maxTTL)
	case aof == "no", fsync != "" && fsync != "always":
		p.found(bad, checkPersistence, "set appendonly yes and appendfsync always, or do without --trust-persistence", "%s: it can lose locks in a crash, and --trust-persistence says that it does not", told)
	case aof == "", fsync == "":
		p.found(warning, checkPersistence, "see for yourself that it has appendonly yes and appendfsync always, or allow +config|get to its user", "%s: not all is to be seen, and --trust-persistence relies on it", told)
	default:
		p.found(good, checkPersistence, "", "%s", told)
	}
}

func orUnknown(text string) string {
	if text == "" {
		return "not told"
	}
	return text
}

func (p *patient) memory() {
	policy := p.info["maxmemory_policy"]
	used, _ := strconv.ParseFloat(p.info["used_memory"], 64)
	limit, _ := strconv.ParseFloat(p.info["maxmemory"], 64)
	switch {
	case policy != "" && policy != "noeviction":
		p.found(warning, checkMemory, "CONFIG SET maxmemory-policy noeviction, and the same in its redis.conf", "maxmemory-policy is %s, which may evict locks", policy)
	case limit > 0 && used*100 > limit*fullPercent:
		p.found(warning, checkMemory, "raise maxmemory, or find what fills it: --bigkeys of redis-cli", "%.0f %% of maxmemory is used: it soon refuses locks", used*100/limit)
	case policy == "":
		p.found(warning, checkMemory, "see that maxmemory-policy is noeviction", "does not tell its maxmemory-policy")
	default:
		p.found(good, checkMemory, "", "maxmemory-policy is noeviction")
	}
}

// vote tells of what the Locker holds against the server, and no other check has told.
func (p *patient) vote() {
	if p.report == nil || p.report.Err == nil {
		return
	}
	for _, f := range p.findings {
		if f.Verdict == bad {
			return
		}
	}
	p.found(bad, checkVote, "", "its votes do not count: %v", p.report.Err)
}
