package redlocktest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// version is the release whose INFO the nodes imitate.
const version = "7.0.15"

var infoSections = []string{"server", "clients", "memory", "persistence", "stats", "replication", "cluster"}

// writeInfo answers INFO [section …]; an unknown section is empty, as in Redis.
func (p *process) writeInfo(c *server.Peer, args []string) {
	wanted := map[string]bool{}
	for _, arg := range args {
		wanted[strings.ToLower(arg)] = true
	}
	all := len(args) == 0 || wanted["all"] || wanted["default"] || wanted["everything"]

	var sections []string
	for _, name := range infoSections {
		if all || wanted[name] {
			sections = append(sections, p.infoSection(name))
		}
	}
	text := strings.Join(sections, "\r\n")

	if c.Resp3 {
		c.WriteRaw(fmt.Sprintf("=%d\r\ntxt:%s\r\n", len(text)+len("txt:"), text))
		return
	}
	c.WriteBulk(text)
}

func (p *process) infoSection(name string) string {
	var fields []string
	add := func(name string, value any) {
		fields = append(fields, fmt.Sprintf("%s:%v\r\n", name, value))
	}
	switch name {
	case "server":
		now := p.node.clock.now()
		// Redis subtracts whole seconds of the wall clock, so the uptime may be
		// up to a second too long, and jumps when the clock does.
		uptime := now.Unix() - p.started.Unix()
		add("redis_version", version)
		add("redis_build_id", "miniredis")
		add("redis_mode", "standalone")
		add("run_id", p.runID)
		add("tcp_port", p.node.addr.Port)
		add("server_time_usec", now.UnixMicro())
		add("uptime_in_seconds", uptime)
		add("uptime_in_days", uptime/(24*60*60))
	case "clients":
		add("connected_clients", p.node.links.len())
	case "memory":
		add("maxmemory", 0)
		add("maxmemory_policy", "noeviction")
	case "persistence":
		add("loading", 0)
		add("aof_enabled", 0)
	case "stats":
		add("total_commands_processed", p.node.commands.Load())
	case "replication":
		add("role", "master")
		add("connected_slaves", 0)
		add("master_replid", p.runID)
		add("master_replid2", strings.Repeat("0", 40)) // never a replica
	case "cluster":
		add("cluster_enabled", 0)
	}
	title := "# " + strings.ToUpper(name[:1]) + name[1:] + "\r\n"
	return strings.Join(slices.Insert(fields, 0, title), "")
}

// writeRole answers ROLE as a master without replicas does.
func writeRole(c *server.Peer) {
	c.Block(func(w *server.Writer) {
		w.WriteLen(3)
		w.WriteBulk("master")
		w.WriteInt(0)
		w.WriteLen(0)
	})
}
