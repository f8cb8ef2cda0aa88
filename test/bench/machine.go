package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A machine is where figures come from. They are not comparable with those of another.
type machine struct {
	CPU    string
	Cores  int
	System string // with its kernel
}

func thisMachine() machine {
	return machine{CPU: cpuModel(), Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH + " " + kernel()}
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		// macOS says it so, where it has a name for it.
		out, _ := exec.Command("sysctl", "-n", "machdep.cpu.brand_string").Output()
		return strings.TrimSpace(string(out))
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func kernel() string {
	out, _ := exec.Command("uname", "-r").Output()
	return strings.TrimSpace(string(out))
}

// loadAverage is that over the last minute, where the system tells it: what is measured beside other
// work says more of that than of a library.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// A version is that of something that takes part.
type version struct{ Name, Version string }

// versions are those of all that takes part, but this library: that is the tree around the page.
func versions(ctx context.Context, node *redis.Client) ([]version, error) {
	info, err := infoOf(ctx, node, "server")
	if err != nil {
		return nil, err
	}
	all := []version{{"Go", strings.TrimPrefix(runtime.Version(), "go")}, {"redis-server", info["redis_version"]}}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return all, nil
	}
	for _, dep := range build.Deps {
		switch dep.Path {
		case "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4", "github.com/bsm/redislock",
			"github.com/redis/rueidis", "github.com/jackc/pgx/v5":
			all = append(all, version{strings.TrimPrefix(dep.Path, "github.com/"), dep.Version})
		}
	}
	return all, nil
}

// infoOf is a section of INFO.
func infoOf(ctx context.Context, node *redis.Client, section string) (map[string]string, error) {
	text, err := node.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("ask a node for its %s: %w", section, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields, nil
}
