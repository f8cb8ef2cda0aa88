// Command storm shows what a gate is for. Eight processes with 64 workers each sell from a few stocks,
// guarded by leases of a second, and keep the stocks in a real PostgreSQL, MariaDB, SQLite or Redis.
// Meanwhile processes are stopped for longer than a lease lasts, by preference in the middle of a sale,
// and killed. Then the same is done with the gate taken out.
//
//	make guards-storm FOR=60s
//
// A sale reads the stock outside of any transaction, thinks for some milliseconds, and then writes what
// it believes is left, or takes away what it believes is there. So a write that comes late loses the
// sales of others, or sells what is gone. Who finds too little left has some delivered, by the same
// way. Each write is entered in a journal in the same step, and the store itself gives the journal its
// order.
//
// # What is checked
//
//   - Stock is never negative, in any entry of the journal.
//   - Units sold are units gone: the stock is what was there and was delivered, less what was sold. That
//     is looked at all the time, not only at the end.
//   - Each write has found the stock that the one before it has left.
//   - The tokens of a resource never go down in the order of its journal.
//   - Each write that a worker was told of is in the journal, and none that was refused is.
//   - Each refusal names a token that is higher than the one it refused.
//
// With the gate nothing of this may fail, and stale writes must have been refused, or the run has shown
// nothing. Without the gate something must fail.
package main
