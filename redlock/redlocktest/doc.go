// Package redlocktest runs a fleet of Redis nodes inside the test, with faults:
// crashes with and without memory, hangs, delays, partitions, and clocks that
// jump or run at a rate of their own. The nodes are miniredis servers, so scripts
// are run as real Lua, and the clients are go-redis in its default options but
// for maintenance notifications, whose handshake can stop a bubble's time. It
// does **not** prove that something works on a real redis-server: see "What is
// not modelled".
//
//	func TestOneNodeMayHang(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			fleet := redlocktest.Start(t, 3)
//			locker, err := redlock.New(fleet.Clients(), redlock.WithClock(redlocktest.NewClock()))
//			…
//			fleet.Hang(0)
//			use(locker)           // works as before
//			time.Sleep(time.Hour) // takes no time
//		})
//	}
//
// # In memory, or by TCP
//
// By default clients and nodes are joined in memory and everything that blocks
// is seen by testing/synctest: in a bubble an hour passes at once, TTLs and
// go-redis' timeouts included. Make the fleet in the bubble that uses it. With
// [WithTCP] the nodes listen on loopback ports, for other processes; that does
// not work in a bubble. A program that is not a test calls [New] and
// [Fleet.Close].
//
// For clients in options of your own give redis.Options the address of a node
// and [Host.Dial] as Dialer. Clients that the fleet did not make are yours to
// close, before the fleet.
//
// # Faults
//
//	fault           connections    dial      memory   commands that were sent
//	Stop            closed         refused   kept     lost
//	Restart         closed         works     kept     lost
//	RestartEmpty    closed         works     lost     lost
//	Hang            open           works     kept     wait for Resume
//	Delay           open           works     kept     answered later
//	DelayRequests   open           works     kept     arrive later
//	Partition       open, silent   blocks    kept     lost; reset at Heal
//	SkewClock       open           works     expires earlier or later
//	ClockRate       open           works     expires faster or slower
//
// Stop, Restart and RestartEmpty, Hang and Resume act on the process: a restart
// ends a hang. Delays, partitions and clocks belong to the machine and its
// network, and outlive the process. Faults combine. When a method returns, its
// fault is in force for everything that has not yet reached the node.
//
// A partition is between a node and all client machines ([Fleet.Partition]) or
// one of them ([Host.Partition]); a node is reachable when neither cuts it off.
// What was on its way when the cut came is lost. At the end of the partition a
// connection that lost something, the news of its closing included, is reset on
// both sides; one that carried nothing goes on.
//
// # Time
//
// Each node has a wall clock, which shows true time until [Fleet.SkewClock] or
// [Fleet.ClockRate] change it, and by which its TTLs, TIME, and INFO's uptime and
// server_time_usec run, also while the node is stopped or hangs. It is read once
// for all commands that arrive together, when they arrive, or are taken up after
// a hang. So a key never lives longer by the node's clock than its TTL, and ends
// to the nanosecond, where Redis gives it up to a millisecond more.
//
// A client machine's own clock is a [Clock], for redlock.WithClock. Give a locker one in every
// bubble: the system's clock counts the time that the machine slept, which is real even there.
//
// # What is not modelled
//
//   - What miniredis lacks: CONFIG, ACL rules, replication, and more. INFO has the
//     sections server, clients, memory, persistence, stats, replication and
//     cluster, with the fields that a client checks a node by; INFO and ROLE are
//     answered at once inside MULTI.
//   - Disks: Restart brings back all that was ever acknowledged.
//   - Buffers that fill up: what is sent to a hung node is kept without limit.
//   - Datagrams: bytes are lost with all that follow on their connection, never
//     singly, doubled or reordered. Connecting takes no time.
//   - Processing time, and load: with thousands of keys on a node each command
//     takes longer than in Redis, since miniredis looks at every TTL whenever time
//     has passed.
//   - With WithTCP, to other processes: their machines (only [Fleet.Partition] cuts
//     them off), and refusal (a stopped node accepts and resets at once, and one
//     that is cut off accepts and is silent).
package redlocktest
