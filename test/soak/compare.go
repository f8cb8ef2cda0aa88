package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// compare runs the part with the locks with every library, with the same seed and schedule, and
// prints a table.
func compare(ctx context.Context, c config, say func(string, ...any)) error {
	c.loads, c.cycles, c.discard = []string{"locks"}, 9, true
	say("seed %d", c.seed)
	var rows []string
	for _, lib := range libs {
		c.lib = lib.name
		r, err := soak(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", lib.name, err)
		}
		say("%v", r)
		cycle := "does not end"
		if r.HungCycles > 0 {
			cycle = r.HungCycle.Round(100 * time.Microsecond).String()
		}
		if strings.HasPrefix(lib.note, "1 node") {
			cycle = "n/a"
		}
		rows = append(rows, fmt.Sprintf("| %s %s | %s | %d | %d | %s | %d | %v | %v | %s |",
			lib.name, version(lib.module), lib.note, r.Operations["lock"]["acquired"], r.Counted[overlap],
			map[bool]string{true: fmt.Sprint(r.Counted[regress]), false: "n/a"}[lib.name == "quorate"],
			len(r.LeftBehind), r.Outage.For.Round(100*time.Millisecond), r.LongestWait.Round(100*time.Millisecond), cycle))
	}
	say("%s", "| library | how | acquired | overlaps | tokens that went back | left behind | longest outage | longest wait | cycle, one of five hung |")
	say("%s", "|---|---|---|---|---|---|---|---|---|")
	for _, row := range rows {
		say("%s", row)
	}
	return nil
}

// version is that of a module in this binary.
func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == module && m.Replace == nil {
			return m.Version
		}
	}
	return ""
}
