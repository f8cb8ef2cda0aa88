// Package fencing guards updates of a resource that many replicas change: one at a time by a
// lease, and safely by a gate at the resource that refuses the write of a holder who comes late.
// It does **not** make arbitrary code safe: only writes that go through the gate, with the
// token, are.
//
//	gate, err := fencing.NewRedisGate(store)
//	guard, err := fencing.NewGuard(locker, gate)
//	err = guard.Do(ctx, "sku:42", func(ctx context.Context, token redlock.Token) error {
//		_, err := gate.IncrBy(ctx, "sku:42", token, "stock:{sku:42}", -1, 0)
//		return err
//	})
//
// # The paused holder
//
// A lease ends by time, and a process cannot know that it will not be paused (by a garbage
// collector, a hypervisor, a swapping disk) between its last look at the clock and its write:
//
//	A acquires sku:42, token 33      reads 10 units
//	A is paused                      …                         the lease runs out
//	B acquires sku:42, token 34      reads 10, writes 9        the gate has seen 34
//	A goes on                        writes 9 with token 33    33 < 34: ErrStaleToken
//
// Without the gate A's write lands, two units are sold and one is gone. No TTL is long enough,
// and no check before the write is close enough; so the check is one step with the write.
//
// # What is guaranteed
//
//   - No write through the gate with a token lower than one it has admitted for the resource.
//     So writes happen in the order of the leases, whoever wakes up when.
//   - Check and write are atomic: a refused token has written nothing.
//   - In [Guard.Do] the token is admitted before the function starts, so what the function reads
//     is final as far as older holders go. Reads need no gate.
//   - One function at a time for each resource, while leases are valid. That saves work and
//     waiting; soundness does not depend on it.
//   - [Guard.DoAll] runs its function with all of its resources held, or not at all, and calls of it
//     never wait for each other in a circle.
//   - An item given to a [Batcher] is in one batch at most, and in none if its caller is told that its batch
//     has not begun.
//
// # What is not
//
//   - A write that does not go through the gate, or goes to another resource's data. The gate
//     knows the name of the resource and the token, not what belongs to it.
//   - Effects that cannot be refused: mail that was sent, a card that was charged. Do them
//     after the write was admitted, or give them the token as an idempotency key.
//   - Order between writes with one token: that is the holder's own affair.
//   - All or nothing for writes to several resources, beyond what the store gives: with DoAll each
//     write has the token of its resource, and some may be admitted while another is refused. In
//     one database one transaction can admit them all.
//   - That no circle of waiting arises from a Do inside of another: take what is needed at once.
//   - That an error means that nothing was written. Only ErrStaleToken, ErrBelowFloor and errors
//     about arguments do; a connection that breaks may have carried the write.
//
// # Batches
//
// Updates of one resource come one after the other, so it takes as many of them in a second as its
// store can answer in turn. A [Batcher] does in one guarded section what all callers want who wait
// for the resource in this process, with one write for all of them:
//
//	batcher, err := fencing.NewBatcher(guard, func(ctx context.Context, sku string, token redlock.Token, orders []*order) error {
//		return sellAll(ctx, sku, token, orders) // in one transaction or script, which tells each order what became of it
//	})
//	err = batcher.Do(ctx, "sku:42", &order{units: 2})
//
// It pays where many wait in one process. Where few do, in many processes, their turns are shorter than
// with Guard.Do, which hands a lease on from one caller to the next.
//
// # Failures
//
//	what fails                              what happens
//	holder paused past its TTL              next holder goes on after at most the TTL; late writes: ErrStaleToken
//	holder killed                           the same, without the late writes
//	lease lost while fn runs                fn's context ends; its writes pass until the next holder is admitted
//	fn ignores its context                  WithHoldLimit, and what validity was left: then the next holder
//	lock nodes lose all fences              tokens start from the clock again; those of a clock that is behind
//	                                        are refused, Do returns ErrStaleToken without running fn
//	store unreachable                       Do returns the client's error without running fn; nothing is written
//	store loses its last writes (failover)  fence and data go back together; a holder from before the loss may be
//	                                        admitted until a newer one comes
//	store evicts keys                       a lost fence admits anyone: maxmemory-policy must be noeviction, or volatile-*
//	                                        where fences have no TTL, as by default
//	fence is overwritten with something     ErrDamagedFence: nothing is admitted until it is deleted
//	one of several leases is lost           fn's context ends, with that lease's cause; the others are released when fn returns
//	one item of a batch cannot be done      up to the function: it can tell that item, or fail the batch for all
//	a batch panics                          in the caller that leads it; the others are told, later batches go on
//	resource is slow, callers pile up       WithWaitLimit, and WithQueueLimit: ErrQueueFull at once
//	transaction is undone by the database   ErrTxConflict, which says nothing about the token: run it again, as SQLGate.InTx does
//	Commit gives no answer                  the driver's error: the writes may be there or not; with the same token they may be tried again
//	fence table is missing                  ErrNoTable, with the statement that creates it; nothing is written
//	service cannot ask its gate             503 to the caller, and the service's handler is not run
//
// # Gates
//
// A [Gate] is anything that remembers the highest token of a resource. [RedisGate] is the one
// for data in Redis, with its own writes and with [RedisGate.Run] for a script of yours, whose
// body is put behind the check:
//
//	do … the check, which ends the script with an error if the token is stale … end <body>
//
// KEYS and ARGV in the body are the caller's alone, and line numbers are the body's. The fence
// is one key for each resource, which holds the highest token in decimal. In a cluster it shares
// the hash slot of the keys that have the resource as hash tag: resource sku:42, data
// stock:{sku:42}.
//
// # Gates in a database
//
// [SQLGate] keeps the fences in a table. A transaction admits its token first, which locks the row of
// the resource until the end: so check and writes are one step, and the transactions of two holders
// come one after the other, those of the older one first or not at all. No driver is imported; which
// one is behind database/sql does not matter.
//
//	err = gate.InTx(ctx, db, nil, "sku:42", token, func(tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, `UPDATE stock SET qty = qty - 1 WHERE sku = 42`)
//		return err
//	})
//
// [SQLTable] is for data of which one row is one resource: a column of that row is the fence, and the
// update carries the check.
//
//	database, isolation              admission                                   what a holder reads after it
//	PostgreSQL read committed        waits for the row, looks at its newest      all that older holders have committed
//	PostgreSQL repeatable read, up   waits for the row; ErrTxConflict if         the same: the snapshot is not older than
//	                                 somebody raised it after the snapshot       the admission
//	MySQL, MariaDB: all levels       waits for the row, looks at its newest,     the same, if the admission was the first
//	                                 also past an older snapshot                 statement; what was read before may be old
//	SQLite                           waits for the file, busy_timeout long;      the same, as there is one writer
//	                                 then ErrTxConflict
//
// So admit first, and read then. Data and fences must be in one database, with one primary that takes
// the writes; a cluster in which several nodes do (Galera) may let two holders commit side by side. In
// MySQL, a statement that commits by itself (CREATE, ALTER, LOCK TABLES) ends the protection with the
// transaction, and both tables have to be InnoDB.
//
// # Gates in a service
//
// [Transport] sends the tokens of the section that a request is made in as headers, and [NewHandler]
// admits them before the handler behind it is run:
//
//	Quorate-Resource: sku:42           percent-encoded
//	Quorate-Token: 1732190657000000    decimal
//
// Code behind it finds the token with [TokenFor], and needs it: only a write that goes through a
// gate itself is safe from a pause in the service.
//
// # Telemetry
//
// A span fencing.guard for each Do, from the waiting to the release, with quorate.name,
// quorate.token and quorate.outcome, for a batch also quorate.items, linked to the span redlock.acquire of the lease that covers
// it; for several resources quorate.names and quorate.tokens, in one order, and a link for each lease.
// The span of a batch is that of the caller who leads it, linked to the spans of the others; the histogram
// quorate.fencing.batch.items has how many items batches have.
// Counters: quorate.fencing.guards by quorate.outcome (ok, error, panic, stale_token, wait_limit,
// hold_limit, queue_full, below_floor, tx_conflict, and the conditions of redlock) and
// quorate.fencing.stale by quorate.gate (redis, postgresql, mysql, sqlite), which counts what a gate
// has refused, in Do or outside of it.
package fencing
