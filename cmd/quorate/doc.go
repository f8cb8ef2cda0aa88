// Quorate is the command: it runs programs under leases, shows what the nodes know, and finds what is wrong
// with them. It is a thin face over the packages, and does **not** promise more than they do: a program that
// was paused may act late, which only the resource can refuse, by the token in the program's environment.
//
//	export QUORATE_NODES=redis://10.0.0.1:6379,redis://10.0.0.2:6379,redis://10.0.0.3:6379
//	quorate run nightly-backup -- pg_dump -f /backup/db.dump
//	quorate lead billing -- ./billing --port 8080
//	quorate cron report "0 2 * * *" -- ./report
//	quorate doctor
//
// "quorate --help" and "quorate man" tell of all commands, flags and exit codes.
//
// # How a program is ended in time
//
// A program is told to end by TERM before the lease under it is over, and killed before anybody else can hold
// the name, if the nodes kept the lease:
//
//	lease extended              cannot be extended any more
//	▼                           ▼
//	├───────────────────────────┼──────── grace ────────┼ reserve ┼ drift ┤
//	                            TERM                    KILL      │       the nodes free the name
//	                                                              the validity ends
//
// The grace is a quarter of the TTL by default, the reserve a twentieth, the drift 1 % + 2 ms. TERM and KILL go
// to the process group of the program. KILL comes from quorate; a quarter of the reserve later from a second
// process, the guard, if quorate was stopped meanwhile; and at once from the guard if quorate was killed.
//
//	what goes wrong                            what becomes of the program
//	too few nodes answer                       TERM, and KILL after the grace, as above
//	the nodes have another holder, or none     the same from when that is seen, with the next extension: until then two may run
//	quorate is killed                          KILL at once, by the guard
//	quorate is stopped, or stuck               KILL in time, by the guard
//	quorate and its guard are killed           on Linux KILL, but not for what it has started; elsewhere it runs on
//	the program, or the machine, is paused     it may act late, when it goes on
//	it starts a process group of its own       that is not reached, as on Windows all that it starts
package main
