package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/internal/quorum"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

// previewed is how many bytes of a state are shown.
const previewed = 200

func (c *console) showCommand() *cli.Command {
	return &cli.Command{
		Name:        "show",
		Usage:       "show who holds a name, and what each node knows of it",
		ArgsUsage:   "NAME",
		Description: "Shows holder, token, age, TTL and saved state of a name, and the vote of each node. It also shows what is known when too few nodes answer, and then ends with code 121. A name that nobody knows is free.",
		Action:      c.show,
	}
}

func (c *console) show(ctx context.Context, cmd *cli.Command) error {
	asJSON, err := isJSON(cmd)
	if err != nil {
		return err
	}
	name, err := oneArgument(cmd, "NAME")
	if err != nil {
		return err
	}
	f, err := c.openForLooking(cmd)
	if err != nil {
		return err
	}
	defer f.close()
	known, failure := f.locker.Inspect(ctx, name)
	if len(known.Nodes) == 0 && failure != nil {
		return failure
	}
	if asJSON {
		v := detailsOf(known)
		if failure != nil {
			v.Error = failure.Error()
		}
		return errors.Join(printJSON(c.out, v), failure)
	}
	return errors.Join(c.printDetails(known, failure == nil), failure)
}

// printDetails prints what is known of a name.
func (c *console) printDetails(known redlock.Status, isQuorate bool) error {
	v := viewOf(known)
	summary := newTable("name", printable(v.Name))
	holder := v.holderOrClaimant()
	switch {
	case holder == "" && !isQuorate:
		holder = "not known: too few nodes answer"
	case holder == "" && v.Token == 0:
		holder = "nobody, and nobody has lately"
	case holder == "":
		holder = "nobody"
	}
	summary.add("holder", holder)
	if v.Token > 0 {
		summary.add("token", v.Token.String())
	}
	if v.Holder != "" {
		summary.add("age", v.age())
		summary.add("TTL", brief(v.ttl()))
	}
	summary.add("votes", fmt.Sprintf("%s, %d make a quorum", v.votes(), v.Quorum))
	if known.State != nil {
		summary.add("state", preview(known.State))
	}
	switch v.Kind {
	case kindElection:
		summary.add("what", "an election: see quorate leaders "+v.Name)
	case kindJob:
		summary.add("what", "a job: see quorate jobs history "+v.Job)
	}
	if err := summary.print(c.out); err != nil {
		return err
	}
	nodes := newTable("NODE", "HOLDER", "TTL", "FENCE", "NOTE")
	for _, n := range known.Nodes {
		fence := "-"
		if n.Fence > 0 {
			fence = n.Fence.String()
		}
		nodes.add(n.Node, orDash(n.Holder), brief(n.TTL), fence, noteOf(n))
	}
	if _, err := fmt.Fprintln(c.out); err != nil {
		return err
	}
	return nodes.print(c.out)
}

func noteOf(n redlock.NodeStatus) string {
	switch {
	case n.Err != nil:
		return n.Err.Error()
	case n.Quarantine > 0:
		return "restarted lately: its vote does not count for " + brief(n.Quarantine)
	}
	return ""
}

// preview shows the beginning of a state, in a way that does nothing to a terminal.
func preview(state []byte) string {
	size := strconv.Itoa(len(state)) + " bytes"
	if len(state) == 0 {
		return size
	}
	shown, rest := state, ""
	if len(shown) > previewed {
		shown, rest = shown[:previewed], "…"
	}
	if !utf8.Valid(state) {
		return fmt.Sprintf("%s: %x%s", size, shown, rest)
	}
	for !utf8.Valid(shown) { // cut in the middle of a character
		shown = shown[:len(shown)-1]
	}
	return fmt.Sprintf("%s: %s%s", size, printable(string(shown)), rest)
}

// Kinds of what a name is used for.
const (
	kindLease    = "lease"
	kindElection = "election"
	kindJob      = "job"
)

// A nameView is what the nodes know of a name, for people and programs.
type nameView struct {
	Name      string `json:"name"`
	NameBytes []byte `json:"name_bytes,omitempty"` // a name that is not UTF-8, which JSON cannot carry
	Kind      string `json:"kind"`
	Job       string `json:"job,omitempty"`
	// Holder has the lock of a quorum; Claimant the most locks, where nobody has so many.
	Holder   string        `json:"holder"`
	Claimant string        `json:"claimant,omitempty"`
	Token    redlock.Token `json:"token"`
	// Acquired is about when the lease was acquired, as its token says; nil where it does not.
	Acquired *time.Time `json:"acquired_about,omitempty"`
	TTL      int64      `json:"ttl_ms"`
	Votes    int        `json:"votes"`
	Nodes    int        `json:"nodes"`
	Quorum   int        `json:"quorum"`
}

func viewOf(known redlock.Status) nameView {
	v := nameView{
		Name: known.Name, Kind: kindLease, Holder: known.Holder, Token: known.Token,
		TTL: known.TTL.Milliseconds(), Nodes: len(known.Nodes), Quorum: quorum.Size(len(known.Nodes)),
	}
	if !utf8.ValidString(known.Name) {
		v.NameBytes = []byte(known.Name)
	}
	if job, ok := scheduler.JobOf(known); ok {
		v.Kind, v.Job = kindJob, job
	} else if _, ok := leader.TermOf(known); ok {
		v.Kind = kindElection
	}
	locks := map[string]int{}
	for _, n := range known.Nodes {
		if n.Holder == "" {
			continue
		}
		locks[n.Holder]++
		if locks[n.Holder] > v.Votes {
			v.Votes, v.Claimant = locks[n.Holder], n.Holder
		}
	}
	if v.Holder != "" {
		v.Claimant, v.Votes = "", locks[v.Holder]
		if at := time.UnixMicro(int64(v.Token)); !at.After(time.Now()) && time.Since(at) < longestAge {
			at = at.UTC()
			v.Acquired = &at
		}
	}
	return v
}

// longestAge is that of a lease with a token that may have been a time: leases have bounds, and tokens that
// began at 1 do not look like the year 1970 to people.
const longestAge = 365 * 24 * time.Hour

func (v *nameView) ttl() time.Duration { return time.Duration(v.TTL) * time.Millisecond }

func (v *nameView) votes() string { return fmt.Sprintf("%d/%d", v.Votes, v.Nodes) }

// age is how long the holder has had the name, as far as the token tells.
func (v *nameView) age() string {
	if v.Acquired == nil {
		return "-"
	}
	return "~" + since(*v.Acquired)
}

// holderOrClaimant is the holder; or in parentheses who has locks, but too few of them.
func (v *nameView) holderOrClaimant() string {
	if v.Holder == "" && v.Claimant != "" {
		return "(" + v.Claimant + ")"
	}
	return v.Holder
}

// since is how long ago a time is, in whole seconds.
func since(t time.Time) string { return max(0, time.Since(t)).Round(time.Second).String() }

// details are a nameView with what each node knows.
type details struct {
	nameView
	StateSize int        `json:"state_size"`
	State     []byte     `json:"state,omitempty"`      // in base64
	StateText string     `json:"state_text,omitempty"` // the same, where it is text
	NodeList  []nodeView `json:"node_votes"`
	Error     string     `json:"error,omitempty"`
}

type nodeView struct {
	Node       string        `json:"node"`
	Holder     string        `json:"holder"`
	TTL        int64         `json:"ttl_ms"`
	Fence      redlock.Token `json:"fence"`
	Quarantine int64         `json:"quarantine_ms,omitempty"`
	Error      string        `json:"error,omitempty"`
}

func detailsOf(known redlock.Status) details {
	d := details{nameView: viewOf(known), StateSize: len(known.State), State: known.State, NodeList: []nodeView{}}
	if utf8.Valid(known.State) {
		d.StateText = string(known.State)
	}
	for _, n := range known.Nodes {
		v := nodeView{Node: n.Node, Holder: n.Holder, TTL: n.TTL.Milliseconds(), Fence: n.Fence, Quarantine: n.Quarantine.Milliseconds()}
		if n.Err != nil {
			v.Error = n.Err.Error()
		}
		d.NodeList = append(d.NodeList, v)
	}
	return d
}
