package main

// A configuration is one small fleet, small enough to be searched to the end.
type configuration struct {
	name  string
	model string // file
	flags []string
	what  string
	quick bool // searched by the tests too
}

// The numbers in the flags: C acquisitions (clients in clock.pml), P proposals and E extensions
// of each, tokens up to K, W tokens reserved by each acquisition.
var configurations = []configuration{
	{"delays", lease, []string{"C=2", "P=1", "K=3", "FREED"}, "2 acquisitions; messages lost, late, doubled, reordered; expiry; any clock", true},
	{"proposals", lease, []string{"C=2", "P=2", "K=4", "FREED"}, "the same, with a second proposal in each attempt", true},
	{"extension", lease, []string{"C=2", "P=1", "E=1", "K=3", "FREED"}, "an extension of each, which heals nodes and may raise its number", true},
	{"restart", lease, []string{"C=2", "P=1", "K=3", "CRASHES=2", "FREED"}, "2 restarts without memory, of one node or of two; quarantine", true},
	{"three", lease, []string{"C=3", "P=1", "K=3"}, "3 acquisitions", true},
	{"reservation", lease, []string{"C=2", "P=1", "K=5", "W=2"}, "ranges of 2 tokens, handed on inside the process", true},
	{"register", lease, []string{"C=2", "P=1", "K=3", "REGISTER"}, "each lease saves once; write-back", true},
	{"clock", clock, []string{"C=2"}, "time in ticks, clocks of unequal rate; 2 clients that acquire and extend for ever", true},

	{"proposals, extension", lease, []string{"C=2", "P=2", "E=1", "K=4", "FREED"}, "second proposals and an extension", false},
	{"2 extensions", lease, []string{"C=2", "P=1", "E=2", "K=4"}, "", false},
	{"restart, proposals", lease, []string{"C=2", "P=2", "K=4", "CRASHES=1"}, "a restart, second proposals", false},
	{"restart, extension", lease, []string{"C=2", "P=1", "E=1", "K=4", "CRASHES=1"}, "a restart, extensions that heal the empty node", false},
	{"restarts, extension", lease, []string{"C=2", "P=1", "E=1", "K=3", "CRASHES=2"}, "2 restarts, extensions", false},
	{"three, extension", lease, []string{"C=3", "P=1", "E=1", "K=3"}, "", false},
	{"three, restart", lease, []string{"C=3", "P=1", "K=4", "CRASHES=1"}, "", false},
	{"three, reservation", lease, []string{"C=3", "P=1", "K=6", "W=2"}, "", false},
	{"reservation, restart", lease, []string{"C=2", "P=1", "K=5", "W=2", "CRASHES=1"}, "", false},
	{"reservation, extension", lease, []string{"C=2", "P=1", "E=1", "K=5", "W=2"}, "", false},
	{"register, extension", lease, []string{"C=2", "P=1", "E=1", "K=3", "REGISTER"}, "state put back by extensions", false},
	{"register, three", lease, []string{"C=3", "P=1", "K=3", "REGISTER"}, "", false},
	{"clock, three", clock, []string{"C=3"}, "", false},
	{"clock, restart", clock, []string{"C=2", "CRASHES=1"}, "restarts without memory, at any time and without end", false},
}

// A mutant is the model with one rule broken.
type mutant struct {
	flag     string
	what     string // is broken
	in       string // configuration that must fail
	property string // that must be violated there; "" where nothing is, which is worth knowing too
	quick    bool
}

var mutants = []mutant{
	{"NO_FENCE_CHECK", "acquire does not look at the fence", "three", "token_order", true},
	{"FENCE_NOT_STRICT", "acquire: fence <= token for fence < token", "three", "token_order", false},
	{"NO_OWNER_CHECK_ACQUIRE", "acquire takes a lock that another holds", "delays", "mutual_exclusion", true},
	{"NO_OWNER_CHECK_RELEASE", "release deletes whoever's lock", "three", "mutual_exclusion", false},
	{"NO_OWNER_CHECK_EXTEND", "extend takes a lock that another holds", "extension", "frees_for_good", false},
	{"NO_OWNER_CHECK_EXTEND", "the same, where only leases are looked at", "extension, unfreed", "mutual_exclusion", false},
	{"HEAL_WITHOUT_FENCE", "extend heals whatever the fence", "extension", "frees_for_good", false},
	{"RELEASE_KEEPS_FENCE", "release does not raise the fence", "delays", "frees_for_good", true},
	{"RELEASE_TRUSTS_LOCK", "release does not raise the fence where the lock is ours, unless an extension raised the number", "proposals", "frees_for_good", true},
	{"SMALL_QUORUM", "one node is a quorum", "delays", "mutual_exclusion", true},
	{"EARLY_DECISION", "a quorum of answers of any kind decides", "delays", "mutual_exclusion", false},
	{"CARRY_VOTES", "votes of the first proposal count for the second", "proposals", "token_order", false},
	{"NO_VALIDITY_CHECK", "a grant counts though no validity is left", "delays", "mutual_exclusion", true},
	{"LATE_EXTENSION", "an extension counts though the validity had ended", "extension", "token_order", false},
	{"NO_WITHDRAW", "an attempt that failed is not released", "delays", "nothing_left", true},
	{"NO_EXPIRY", "a lock has no TTL", "delays", "acquirable", true},
	{"PROPOSE_NOT_ABOVE", "the second proposal is the highest fence, not one more", "delays", "acquirable", true},
	{"NO_RESTART_RULE", "a node votes as soon as it has restarted", "restart", "mutual_exclusion", true},
	{"NO_RUNID_CHECK", "who knew a node before does not notice its restart", "restart", "mutual_exclusion", false},
	{"STALE_PROPOSAL", "the second proposal is the first again, older than its round", "restart, proposals", "token_order", false},
	{"RESERVE_NOT_TOP", "the fence is set to the bottom of the range", "reservation", "token_order", false},
	{"RESERVE_CHECKS_TOP", "the fence is compared with the top of the range", "reservation", "token_order", true},
	{"READ_ANY", "the state is that of any node of the quorum, not the newest", "register", "register_read", true},
	{"NO_WRITE_BACK", "a state that a minority has is not written back", "register, three", "register_read", false},
	{"SAVE_IGNORES_FENCE", "save looks at neither lock nor fence", "register", "register_read", false},
	{"SAVE_IGNORES_VERSION", "save does not look at the version that is stored", "register, three", "register_read", false},
	{"LATE_SAVE", "a save is confirmed though the lease had ended", "register, extension", "register_fenced", false},

	{"NO_DRIFT", "the validity is the whole TTL", "clock", "mutual_exclusion", true},
	{"VALIDITY_FROM_END", "the validity is counted from the last answer", "clock", "mutual_exclusion", true},
	{"EXTENSION_ADDS", "an extension adds to the validity that is left", "clock", "mutual_exclusion", false},
	{"CLOCK_STOPS", "the client's clock stands still while it sleeps", "clock", "mutual_exclusion", false},
	{"WALL_CLOCK_EXPIRY", "keys expire by the node's wall clock (PXAT), which is set forward", "clock", "mutual_exclusion", false},
	{"SHORT_QUARANTINE", "a quarantine lasts half the maximum TTL", "clock, restart", "mutual_exclusion", false},
	{"TTL_ABOVE_MAXIMUM", "a TTL is longer than the maximum that quarantines last", "clock, restart", "mutual_exclusion", false},

	{"CLOCKS_DISAGREE", "an assumption: clocks differ by more than a quarantine, and nodes forget", "restart", "token_order", false},

	{"RELEASE_KEEPS_FENCE", "release does not raise the fence", "extension, unfreed", "", false},
	{"HEAL_WITHOUT_FENCE", "extend heals whatever the fence", "extension, unfreed", "", false},
	{"LATE_SAVE", "a save is confirmed though the lease had ended", "register", "", false},
}

// partial are configurations for mutants alone: each is a part of one above.
var partial = []configuration{
	{name: "extension, unfreed", model: lease, flags: []string{"C=2", "P=1", "E=1", "K=3"}, what: "extension, without the property frees_for_good"},
}

// properties are the names of the models' assertions.
var properties = [][2]string{
	{"mutual_exclusion", "when a lease is granted or prolonged, no other is valid"},
	{"token_order", "a lease is granted a higher token than all before it, and prolonged only while none has been granted after it"},
	{"frees_for_good", "a node that has carried out the release of an acquisition never holds its lock again, unless it lost its memory in between; checked where FREED is set"},
	{"nothing_left", "where every attempt has ended and no message is under way any more, no lock is left"},
	{"acquirable", "from every state: when the TTLs and quarantines have passed and one node is dead, a client with the slowest clock acquires the name with its second proposal"},
	{"register_read", "a holder is given a state no older than any that a holder was told is saved, or was given, before; where nodes remember"},
	{"register_fenced", "a save that is confirmed was given to every later holder; where nodes remember"},
}

func find(name string) configuration {
	for _, set := range [][]configuration{configurations, partial} {
		for _, c := range set {
			if c.name == name {
				return c
			}
		}
	}
	panic("no configuration " + name) // a slip in the table above
}
