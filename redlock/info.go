package redlock

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var errNoRunID = errors.New("INFO has no run_id")

// nodeInfo is what a server says of itself in INFO.
type nodeInfo struct {
	version          string
	runID            string
	uptime           time.Duration
	role             string
	replicas         int
	replicationKnown bool // it tells whether it was ever promoted
	promoted         bool // it was a replica once
	evicts           string
	clock            time.Time     // zero if it does not tell
	took             time.Duration // the question and its answer
	came             time.Time     // the answer
}

func (i nodeInfo) isReplica() bool { return i.role != "" && i.role != "master" }

// offset is the server's wall clock minus that of a client. The server looked at its clock somewhere
// between the question and the answer, and since that came the client may have stood still: the middle of
// what is possible is the best guess, and what is possible is no offset.
func (i nodeInfo) offset(c Clock) time.Duration {
	least := time.Since(i.came)
	now := c.Now()
	most := time.Since(i.came) + i.took
	d := i.clock.Add((least + most) / 2).Sub(now)
	if d.Abs() <= (most-least)/2 {
		return 0
	}
	return d
}

// readInfo asks a server who it is, in one round trip.
func readInfo(ctx context.Context, client redis.UniversalClient) (nodeInfo, error) {
	asked := time.Now()
	pipe := client.Pipeline()
	sections := []*redis.StringCmd{
		pipe.Info(ctx, "server"), pipe.Info(ctx, "replication"), pipe.Info(ctx, "memory"),
	}
	if err := execute(ctx, pipe); err != nil {
		return nodeInfo{}, err
	}
	came := time.Now()
	fields := map[string]string{}
	for i, section := range sections {
		text, err := section.Result()
		if err != nil {
			if i == 0 || !infoRefused(err) {
				return nodeInfo{}, err
			}
			continue
		}
		addFields(fields, text)
	}
	info, err := parseInfo(fields)
	info.took, info.came = came.Sub(asked), came
	return info, err
}

// addFields reads one section.
func addFields(fields map[string]string, text string) {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
}

func parseInfo(fields map[string]string) (nodeInfo, error) {
	info := nodeInfo{
		version: fields["redis_version"],
		runID:   fields["run_id"],
		role:    fields["role"],
		evicts:  fields["maxmemory_policy"],
	}
	seconds, err := strconv.ParseInt(fields["uptime_in_seconds"], 10, 64)
	if info.runID == "" || err != nil {
		return info, errNoRunID
	}
	// A clock that was set back makes it negative: it has just started, as far as anyone can tell.
	const longest = int64(math.MaxInt64 / time.Second)
	info.uptime = time.Duration(min(max(0, seconds), longest)) * time.Second
	info.replicas, _ = strconv.Atoi(fields["connected_slaves"])
	if second, ok := fields["master_replid2"]; ok {
		info.replicationKnown = true
		info.promoted = strings.Trim(second, "0") != ""
	}
	if micros, err := strconv.ParseInt(fields["server_time_usec"], 10, 64); err == nil {
		info.clock = time.UnixMicro(micros)
	}
	return info, nil
}

// warnings are settings that weaken a node without making it unfit.
func (i nodeInfo) warnings() []string {
	var warnings []string
	if i.replicas > 0 {
		warnings = append(warnings, "has "+strconv.Itoa(i.replicas)+" connected replicas; nodes are independent masters, and a failover would lose locks")
	}
	if i.evicts != "" && i.evicts != "noeviction" {
		warnings = append(warnings, "maxmemory-policy is "+i.evicts+", which may evict locks; set noeviction")
	}
	return warnings
}

func (i nodeInfo) warn(log *slog.Logger, node string) {
	for _, w := range i.warnings() {
		log.Warn("redlock: node "+w, "node", node)
	}
}
