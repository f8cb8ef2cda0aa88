package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// calls are how often a node has carried out each command, those within scripts included.
type calls map[string]int64

// calls asks each of the first n nodes. Asking counts too, as one "info".
func (g *ground) calls(ctx context.Context, n int) ([]calls, error) {
	all := make([]calls, n)
	for i := range all {
		fields, err := infoOf(ctx, g.admins[i], "commandstats")
		if err != nil {
			return nil, err
		}
		all[i] = calls{}
		for key, value := range fields {
			name, ok := strings.CutPrefix(key, "cmdstat_")
			count, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			if !ok {
				continue
			}
			if all[i][name], err = strconv.ParseInt(count, 10, 64); err != nil {
				return nil, fmt.Errorf("read the statistics of a node: %s: %w", key, err)
			}
		}
	}
	return all, nil
}

// since is what was called since an earlier look, of all nodes together, but for the look itself.
func since(before, after []calls) calls {
	all := calls{}
	for i := range after {
		for name, n := range after[i] {
			all[name] += n - before[i][name]
		}
		all["info"]--
	}
	return all
}

// total is all of them.
func (c calls) total() float64 {
	var n int64
	for _, calls := range c {
		n += calls
	}
	return float64(n)
}

// scripts are the calls of scripts.
func (c calls) scripts() float64 { return float64(c["evalsha"] + c["eval"]) }
