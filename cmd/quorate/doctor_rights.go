package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A right is one of those of docs/acl.md that is tried out by doing what it allows, on keys of the
// test lease's name, which no lease is ever taken of: nothing of it is left.
type right struct {
	rule    string
	verdict verdict // where it is missing
	without string
	try     []any // a command
}

// rights tries out what the user of the server may do. A server refuses what a script calls as if the user had
// sent it, so commands that scripts call are sent alone.
func (p *patient) rights(ctx context.Context) {
	k := probeKeysOf(p.exam.prefix, p.exam.name+"/rights")
	all := []right{
		{"+ping", warning, "the server logs a denial every few seconds", []any{"ping"}},
		{"+info", warning, "restarts and replicas go unnoticed", []any{"info", "server"}},
		{"+evalsha", bad, "nothing can be acquired", []any{"evalsha", strings.Repeat("0", 40), 0}},
		{"+eval", bad, "nothing can be acquired after a restart", []any{"eval", "return 1", 0}},
		{"+set", bad, "nothing can be acquired", []any{"set", k.lock, "doctor", "px", p.exam.ttl.Milliseconds()}},
		{"+get", bad, "nothing can be extended or released", []any{"get", k.lock}},
		{"+pexpire", bad, "nothing can be extended", []any{"pexpire", k.lock, p.exam.ttl.Milliseconds()}},
		{"+pttl", bad, "a taken name looks like a broken node", []any{"pttl", k.lock}},
		{"+publish", bad, "a release reports an error", []any{"publish", k.lock, "doctor"}},
		{"+del", bad, "nothing can be released", []any{"del", k.lock}},
	}
	var missing, usable []right
	for _, r := range all {
		denied, err := p.try(ctx, r.try)
		var reply redis.Error
		switch {
		case err != nil && !errors.As(err, &reply):
			found, advice := unreachable(err, p.exam.timeout)
			p.found(bad, checkReach, advice, "it has answered, and then did not: %s", found)
			return
		case denied == deniedCommand:
			missing = append(missing, r)
		case r.rule == "+get", r.rule == "+pttl":
			usable = append(usable, r) // to try keys out
		case r.rule == "+set" && err != nil && denied == deniedNothing:
			p.refusesWrites(err)
		}
	}
	if len(usable) > 0 {
		command := usable[0].try[0]
		for _, pattern := range k.patterns(p.exam.prefix) {
			if denied, _ := p.try(ctx, []any{command, pattern.key}); denied == deniedKey {
				missing = append(missing, right{rule: pattern.rule, verdict: bad, without: pattern.without})
			}
		}
	}
	if !slices.ContainsFunc(missing, func(r right) bool { return r.rule == "+publish" }) {
		for _, channel := range []string{k.lock, k.news} {
			if denied, _ := p.try(ctx, []any{"publish", channel, "doctor"}); denied == deniedChannel {
				missing = append(missing, right{rule: "&" + p.exam.prefix + "*", verdict: bad, without: "a release reports an error"})
				break
			}
		}
	}
	missing = append(missing, p.listening(ctx, k.lock)...)
	p.tellRights(ctx, missing)
}

// tellRights tells of all that are missing in one line, which is as bad as the worst of them.
func (p *patient) tellRights(ctx context.Context, missing []right) {
	if len(missing) == 0 {
		told := "has all rights that leases need"
		if denied, _ := p.try(ctx, []any{"scan", 0, "count", 1}); denied == deniedCommand {
			told += ", and not +scan, which ls, jobs and leaders need"
		}
		p.found(good, checkRights, "", "%s", told)
		return
	}
	worst := warning
	var rules, without []string
	for _, r := range missing {
		if r.verdict == bad {
			worst = bad
		}
		rules = append(rules, r.rule)
		if !slices.Contains(without, r.without) {
			without = append(without, r.without)
		}
	}
	user := p.client.Options().Username
	if user == "" {
		user = "default"
	}
	list := strings.Join(rules, " ")
	p.found(worst, checkRights, fmt.Sprintf("ACL SETUSER %s %s", user, list),
		"the user %s lacks %s: %s", user, list, strings.Join(without, ", "))
}

// refusesWrites says why a server does not take a key.
func (p *patient) refusesWrites(err error) {
	text, advice := err.Error(), "see what it says"
	switch {
	case strings.HasPrefix(text, "MOVED"), strings.HasPrefix(text, "ASK"), strings.HasPrefix(text, "CROSSSLOT"):
		return // another shard's
	case strings.HasPrefix(text, "CLUSTERDOWN"):
		advice = "see that all slots are served, and set cluster-require-full-coverage no"
	case strings.HasPrefix(text, "READONLY"):
		advice = "use masters only"
	case strings.HasPrefix(text, "OOM"):
		advice = "raise maxmemory, or find what fills it"
	case strings.HasPrefix(text, "MISCONF"):
		advice = "look at its disk; without need of snapshots, CONFIG SET save \"\""
	case strings.HasPrefix(text, "NOREPLICAS"):
		advice = "set min-replicas-to-write 0"
	}
	p.found(bad, checkWrites, advice, "refuses what is written: %s", text)
}

// A denial is what an ACL has against a command.
type denial int

const (
	deniedNothing denial = iota
	deniedCommand
	deniedKey
	deniedChannel
)

// try sends a command, and tells what the ACL has against it. Any other error is not about rights.
func (p *patient) try(ctx context.Context, command []any) (denial, error) {
	within, cancel := p.ask(ctx)
	defer cancel()
	err := p.client.Do(within, command...).Err()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return denialOf(err), err
}

func denialOf(err error) denial {
	switch {
	case err == nil, !strings.HasPrefix(err.Error(), "NOPERM"):
		return deniedNothing
	case strings.Contains(err.Error(), "permissions to run"):
		return deniedCommand
	case strings.Contains(err.Error(), "channel"):
		return deniedChannel
	}
	return deniedKey
}

// listening tries out a subscription, on a connection of its own.
func (p *patient) listening(ctx context.Context, channel string) (missing []right) {
	within, cancel := p.ask(ctx)
	defer cancel()
	sub := p.client.Subscribe(within)
	defer func() { _ = sub.Close() }()
	heard := func(err error) denial {
		if err == nil {
			_, err = sub.ReceiveTimeout(within, p.exam.timeout)
		}
		return denialOf(err)
	}
	switch heard(sub.Subscribe(within, channel)) {
	case deniedCommand:
		return []right{{rule: "+subscribe", verdict: warning, without: "waiting and watching go by intervals"}}
	case deniedChannel:
		// Also where +publish is missing, which would have told.
		return nil
	}
	if heard(sub.Unsubscribe(within, channel)) == deniedCommand {
		missing = append(missing, right{rule: "+unsubscribe", verdict: warning, without: "a process hears of names that it no longer waits for"})
	}
	return missing
}

// probeKeys are the keys and channels of a name, as package redlock calls them.
type probeKeys struct{ lock, fence, line, news string }

func probeKeysOf(prefix, name string) probeKeys {
	lock := prefix + name
	if i := strings.Index(lock, "{"); i >= 0 && strings.Index(lock[i+1:], "}") > 0 { // a hash tag of its own
		return probeKeys{lock, lock + ":fence:tagged", lock + ":line:tagged", lock + ":fence:tagged"}
	}
	return probeKeys{lock, "{" + lock + "}:fence", "{" + lock + "}:line", lock + "}:fence"}
}

type keyPattern struct{ key, rule, without string }

func (k probeKeys) patterns(prefix string) []keyPattern {
	all := []keyPattern{{k.lock, "~" + prefix + "*", "nothing can be acquired"}}
	if !strings.HasPrefix(k.fence, "{"+k.lock+"}") {
		return all // they are all under the prefix
	}
	return append(all,
		keyPattern{k.fence, "~{" + prefix + "*}:fence", "nothing can be acquired"},
		keyPattern{k.line, "~{" + prefix + "*}:line", "nobody gets in line for a name"})
}
