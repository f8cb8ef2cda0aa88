/*
 * The time rule of package redlock, in ticks of the true clock. lease.pml takes it for granted
 * that a key outlives the validity of the round that set it, and that a quarantine outlives all
 * rounds that began before the crash. This model checks the arithmetic behind that: three nodes
 * and CLIENTS that acquire, extend, lose and acquire again without end.
 *
 * CLOCKS run at nearly the same rate. Over one TTL, a node's clock and a client's are each up to
 * one tick fast or slow, so the drift that the validity leaves out is two ticks:
 *
 *   a key lives        TTL - 1         ticks or more from the moment it was set
 *   validity lasts     TTL - 2 + 1     ticks or less from the start of its round
 *   a quarantine lasts MAXTTL + 2 - 1  ticks or more from the restart
 *
 * Only these worst cases are drawn. They allow all that the others do: nothing here needs a key
 * to be there, a client may end its lease at any time, and a vote may come late. A pause of a
 * client, a delayed message and a hanging node are ticks that pass.
 *
 * LEFT OUT, because lease.pml has it: tokens and fences, and messages of a round that arrive
 * when the round is over. A free key may be set, and healed, whatever the fence.
 *
 * The flags marked MUTANT break one rule each.
 */

#ifndef C
#define C 2             /* clients */
#endif
#ifndef CRASHES
#define CRASHES 0       /* 1: any node may restart without its memory at any time */
#endif

#define N 3
#define QUORUM 2
#define MAXTTL 4
#ifdef TTL_ABOVE_MAXIMUM        /* MUTANT */
#define TTL (MAXTTL + 3)
#else
#define TTL MAXTTL
#endif
#ifdef NO_DRIFT                 /* MUTANT */
#define DRIFT 0
#else
#define DRIFT 2
#endif
#define VALIDITY (TTL - DRIFT)
#ifdef SHORT_QUARANTINE         /* MUTANT: half of it */
#define QUARANTINE (MAXTTL / 2)
#else
#define QUARANTINE (MAXTTL + 2)
#endif

#define NOBODY 0
#define DEAD (C + 1)    /* the owner of an acquisition that its client has given up */

typedef Node {
	byte lock;
	byte life;      /* ticks until the key expires */
	byte yes;       /* clients, as bits, that have its vote */
#if CRASHES
	byte later;     /* clients whose vote does not count before the quarantine ends */
	byte fresh;     /* ticks until the quarantine ends */
#endif
}

mtype = { idle, asking, held };

typedef Client {
	mtype phase = idle;
	byte left;      /* ticks of validity left, of the lease or of the attempt */
	byte more;      /* the same of an extension that is under way */
}

Node node[N];
Client client[C];

/* The property. Never set: it puts a name to the assertion. */
bit mutual_exclusion;

byte n, t;      /* of use within one step only */

#define flag(c)         (1 << (c))
#define ours(c)         ((c) + 1)
#define yes(c, k)       ((node[k].yes >> (c)) & 1)
#define won(c)          (yes(c, 0) + yes(c, 1) + yes(c, 2) >= QUORUM)
#define down(x)         if :: x > 0 -> x-- :: else fi

inline alone(c)
{
	n = 0;
	do
	:: n < C ->
		assert(mutual_exclusion || n == (c) || !(client[n].phase == held && client[n].left > 0));
		n++
	:: else -> break
	od
}

inline dropvotes(c)
{
	n = 0;
	do
	:: n < N -> node[n].yes = node[n].yes & ~flag(c);
#if CRASHES
		node[n].later = node[n].later & ~flag(c);
#endif
		n++
	:: else -> break
	od
}

/* A new attempt has a new owner. */
#define ASK(c, v) \
	:: d_step { client[c].phase == idle -> \
		n = 0; \
		do \
		:: n < N && node[n].lock == ours(c) -> node[n].lock = DEAD; n++ \
		:: n < N && node[n].lock != ours(c) -> n++ \
		:: else -> break \
		od; \
		client[c].phase = asking; client[c].left = v; \
		printf("step: client %d asks, with %d ticks of validity\n", c, v) }

#define begun(c)        (client[c].phase == asking || client[c].more > 0)

#if CRASHES
#ifdef NO_RESTART_RULE          /* MUTANT */
#define votes(c, k)     node[k].yes = node[k].yes | flag(c)
#else
#define votes(c, k)     if :: node[k].fresh > 0 -> node[k].later = node[k].later | flag(c) :: else -> node[k].yes = node[k].yes | flag(c) fi
#endif
#else
#define votes(c, k)     node[k].yes = node[k].yes | flag(c)
#endif

#define VOTE(c, k, l) \
	:: d_step { begun(c) && !yes(c, k) && (node[k].lock == NOBODY || node[k].lock == ours(c)) -> \
		node[k].lock = ours(c); node[k].life = l; votes(c, k); \
		printf("step: node %d votes for client %d, its key lives %d ticks\n", k, c, l) }

#ifdef VALIDITY_FROM_END        /* MUTANT: counted from the last answer */
#define decided(c, x)   (VALIDITY + 1)
#else
#define decided(c, x)   (x)
#endif
#define WIN(c) \
	:: d_step { client[c].phase == asking && client[c].left > 0 && won(c) -> \
		client[c].phase = held; client[c].left = decided(c, client[c].left); dropvotes(c); alone(c); \
		printf("step: client %d is granted the lease, with %d ticks left\n", c, client[c].left) }

#define EXTEND(c, v) \
	:: d_step { client[c].phase == held && client[c].left > 0 && client[c].more == 0 -> \
		client[c].more = v; dropvotes(c); \
		printf("step: client %d extends, with %d ticks of validity\n", c, v) }

#ifdef EXTENSION_ADDS           /* MUTANT: the TTL is added to what was left */
#define extended(c)     client[c].left + VALIDITY + 1
#else
#define extended(c)     (client[c].left > decided(c, client[c].more) -> client[c].left : decided(c, client[c].more))
#endif
#define PROLONG(c) \
	:: d_step { client[c].phase == held && client[c].left > 0 && client[c].more > 0 && won(c) -> \
		client[c].left = extended(c); client[c].more = 0; dropvotes(c); alone(c); \
		printf("step: client %d has its lease prolonged, with %d ticks left\n", c, client[c].left) }

#define STOP(c) \
	:: d_step { client[c].phase != idle -> \
		client[c].phase = idle; client[c].left = 0; client[c].more = 0; dropvotes(c); \
		printf("step: client %d gives up, or releases\n", c) }

#define FREE(c, k) \
	:: d_step { client[c].phase == idle && node[k].lock == ours(c) -> \
		node[k].lock = NOBODY; node[k].life = 0; \
		printf("step: node %d carries out the release of client %d\n", k, c) }

#if CRASHES
#define CRASH(k, q) \
	:: d_step { node[k].fresh == 0 -> node[k].lock = NOBODY; node[k].life = 0; node[k].fresh = q; \
		printf("step: node %d restarts empty, quarantine of %d ticks\n", k, q) }
#endif

#ifdef CLOCK_STOPS              /* MUTANT: the client's clock does not count the time asleep */
#define SLEEP :: d_step { true -> nodestick(); settle(); printf("step: a tick, in which all clients sleep\n") }
#else
#define SLEEP
#endif

inline clientstick()
{
	n = 0;
	do
	:: n < C -> down(client[n].left); down(client[n].more); n++
	:: else -> break
	od
}

inline nodestick()
{
	n = 0;
	do
	:: n < N ->
		down(node[n].life);
		if :: node[n].life == 0 -> node[n].lock = NOBODY :: else fi;
#if CRASHES
		down(node[n].fresh);
		if :: node[n].fresh == 0 -> node[n].yes = node[n].yes | node[n].later; node[n].later = 0 :: else fi;
#endif
		n++
	:: else -> break
	od
}

/* Attempts and leases whose time is up come to nothing, and votes for a round that has run out
 * will not be counted. */
inline settle()
{
	t = 0;
	do
	:: t < C ->
		if
		:: client[t].left == 0 && client[t].phase != idle -> client[t].phase = idle; client[t].more = 0
		:: else
		fi;
		if :: client[t].phase == idle || (client[t].phase == held && client[t].more == 0) -> dropvotes(t) :: else fi;
		t++
	:: else -> break
	od
}

/* Nodes are alike: states that differ only in their order are one. */
#if CRASHES
#define key(k)  ((((((((node[k].lock << 4) | node[k].life) << 4) | node[k].yes) << 4) | node[k].later) << 4) | node[k].fresh)
#else
#define key(k)  ((((node[k].lock << 4) | node[k].life) << 4) | node[k].yes)
#endif

#define swapbytes(x, y) t = x; x = y; y = t

inline sort(a, b)
{
	if
	:: key(a) <= key(b) -> skip
	:: else ->
		swapbytes(node[a].lock, node[b].lock);
		swapbytes(node[a].life, node[b].life);
		swapbytes(node[a].yes, node[b].yes);
#if CRASHES
		swapbytes(node[a].later, node[b].later);
		swapbytes(node[a].fresh, node[b].fresh);
#endif
	fi
}

#ifdef WALL_CLOCK_EXPIRY        /* MUTANT: PXAT, on a node whose wall clock is set forward */
#define EARLIEST(c, k)  VOTE(c, k, 1)
#else
#define EARLIEST(c, k)
#endif

#define VOTES(c, k)     VOTE(c, k, TTL - 1) EARLIEST(c, k)
#define CLIENT(c) \
	ASK(c, VALIDITY + 1) \
	VOTES(c, 0) VOTES(c, 1) VOTES(c, 2) WIN(c) \
	EXTEND(c, VALIDITY + 1) PROLONG(c) \
	STOP(c) FREE(c, 0) FREE(c, 1) FREE(c, 2)

active proctype world()
{
	do
	:: atomic {
		if
		CLIENT(0)
		CLIENT(1)
#if C > 2
		CLIENT(2)
#endif
#if CRASHES
		CRASH(0, QUARANTINE - 1) CRASH(1, QUARANTINE - 1) CRASH(2, QUARANTINE - 1)
#endif
		SLEEP
		:: d_step { true -> clientstick(); nodestick(); settle(); printf("step: a tick\n") }
		fi;
		d_step {
#ifndef NAMED_NODES
			sort(0, 1); sort(1, 2); sort(0, 1);
#endif
			n = 0; t = 0
		}
	}
	od
}
