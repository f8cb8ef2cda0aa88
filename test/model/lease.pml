/*
 * The lease protocol of package redlock: three nodes, a few acquisitions of one name, and a
 * network that delays, loses, doubles and reorders at will. Spin visits every interleaving.
 * docs/safety.md has the argument in words, docs/model.md what was searched and what it found.
 *
 * CLIENTS are acquisitions, each with an owner of its own, that is one life of a lease from the
 * first question to the last message. Whether two belong to one process makes no difference to
 * a node.
 *
 * THE NETWORK. Every step goes to all nodes at once, so what is under way is known from what the
 * client has begun: a message that was sent may be carried out by a node at any later time, any
 * number of times, in any order, or never. That is loss, delay, doubling and reordering without
 * a single queue. (The lanes of the code keep order on one connection; the model does not count
 * on it.) An answer may be counted at any later time, or never.
 *
 * TIME has no numbers here; clock.pml has them. A client's rounds (proposals, then extensions)
 * are counted, and their validities end in that order: "over" counts how many have ended. All
 * that a node's TTL promises is that a key which was set or refreshed by a message of round r
 * stays until the validity of round r has ended. So
 *   - a key may expire at any time after that, or stay for as long as it likes;
 *   - a quarantine may end at any time after every round that began before the crash has ended,
 *     because it lasts for the maximum TTL.
 * Every real run is one of these: put "over" where the validity ended by the true clock.
 *
 * TOKENS are 1..K, and which one is proposed is open: clocks may be as wrong as they like, and
 * equal. Only where nodes forget, a round that began after a crash proposes more than any that
 * began before it (clocks then have to agree to less than a quarantine; see docs/safety.md).
 * The client's knowledge of fences is left out: it proposes anything, also what would serve it.
 *
 * NODES are alike, so states that differ only in the order of the nodes are one state: after
 * each step the nodes are sorted. NAMED_NODES keeps them in place, for people who read a trace.
 *
 * Each rule of the protocol has a mutant, a flag that breaks it. They are marked MUTANT.
 */

/* The size of the configuration. */
#ifndef C
#define C 2             /* acquisitions */
#endif
#ifndef P
#define P 1             /* proposals of each: rounds of acquire */
#endif
#ifndef E
#define E 0             /* extensions of each */
#endif
#ifndef K
#define K 3             /* highest number */
#endif
#ifndef CRASHES
#define CRASHES 0       /* how often a node restarts without its memory */
#endif
#ifndef W
#define W 1             /* tokens that an acquisition reserves */
#endif
/* REGISTER: leases carry state, and each may save once.
 * FREED: nodes note which releases they have carried out, for the property frees_for_good. */

#define N 3
#define R (P + E)
#ifdef SMALL_QUORUM     /* MUTANT */
#define QUORUM 1
#else
#define QUORUM 2
#endif

#if CRASHES && defined(REGISTER)
#error "the register is promised only where no node forgets"
#endif

typedef Node {
	byte lock;      /* the owner, client + 1; 0 if free */
	byte round;     /* the latest round of the owner that set or refreshed the lock */
	byte fence;
	byte yes;       /* clients, as bits, that have a vote of this node for their present round */
#ifdef FREED
	byte freed;     /* clients whose release was carried out here, since the last crash */
#endif
#if CRASHES
	bit fresh;      /* in quarantine */
	byte later;     /* clients whose vote does not count before the quarantine ends */
	byte wait[C];   /* the rounds that the quarantine outlasts */
#ifdef NO_RUNID_CHECK
	byte met;       /* clients that knew this node before it crashed last */
#endif
#endif
#ifdef REGISTER
	byte version;   /* of the stored state */
	byte value;
	byte kept;      /* clients whose save was accepted here */
	byte back;      /* clients whose write-back was accepted here */
	byte gotversion[C];
	byte gotvalue[C];       /* what the answer to an acquire said of the state */
#endif
}

mtype = { idle, asking, writing, held, done };

typedef Client {
	mtype phase = idle;
	byte sent;              /* rounds begun */
	byte proposals;         /* how many of them are proposals; the others are extensions */
	byte over;              /* rounds whose validity has ended */
	byte good;              /* the last round that a quorum has confirmed */
	byte token;             /* 0 before the grant */
	byte number[R + 1];     /* what round i carries: the top of its range, or a fence number */
	bit released;           /* the release was sent; it carries the last number */
#ifdef REGISTER
	byte value;             /* the state that it was given */
	bit wrote;              /* a write-back was sent */
	bit saved;              /* a save was sent */
	bit missed;             /* a later holder was not given it */
	bit confirmed;          /* and it was told that the save is there, or never will be */
#endif
}

Node node[N];
Client client[C];
byte granted;           /* the last token that was granted */
#if CRASHES
byte crashes;
byte before;            /* the highest number that was proposed before the last crash */
#endif
#ifdef REGISTER
byte settled;           /* the newest value that a holder was given, or told is saved */
#endif

/* The properties. Never set: they put a name to the assertion that fails. */
bit mutual_exclusion, token_order, frees_for_good, nothing_left, acquirable, register_read, register_fenced;

byte i, j, n, m, p, votes, floor, t;    /* of use within one step only, and 0 between steps */

#define numberof(c)     client[c].number[client[c].proposals]
#define valid(c)        (client[c].phase == held && client[c].good > client[c].over)
#define ours(c)         ((c) + 1)
#define flag(c)         (1 << (c))

/* What the nodes do: lua/acquire.lua, extend.lua, release.lua, save.lua. ---------------------- */

/* bottom is the lowest token of the range, top the highest: the same where nothing is reserved.
 * The design says that the scripts work with the top. To compare the fence with it would let the
 * bottom fall below tokens that were handed on before. */
#ifdef RESERVE_CHECKS_TOP       /* MUTANT */
#define proposed(top)   (top)
#else
#define proposed(top)   ((top) - (W - 1))
#endif
#if defined(NO_FENCE_CHECK)             /* MUTANT */
#define above(fence, top)       true
#elif defined(FENCE_NOT_STRICT)         /* MUTANT */
#define above(fence, top)       (fence <= proposed(top))
#else
#define above(fence, top)       (fence < proposed(top))
#endif
#ifdef NO_OWNER_CHECK_ACQUIRE           /* MUTANT */
#define acquirable_by(owner, top, lock, fence)  (lock == owner || above(fence, top))
#else
#define acquirable_by(owner, top, lock, fence)  (lock == owner || (lock == 0 && above(fence, top)))
#endif

#ifdef RESERVE_NOT_TOP          /* MUTANT */
#define stored(top)     ((top) - (W - 1))
#else
#define stored(top)     (top)
#endif

#ifdef HEAL_WITHOUT_FENCE       /* MUTANT */
#define healable(num, fence)    true
#else
#define healable(num, fence)    (fence < num)
#endif
#ifdef NO_OWNER_CHECK_EXTEND    /* MUTANT */
#define extendable_by(owner, num, lock, fence)  (lock != 0 || healable(num, fence))
#else
#define extendable_by(owner, num, lock, fence)  (lock == owner || (lock == 0 && healable(num, fence)))
#endif

#define raise(fence, num)       if :: fence < (num) -> fence = num :: else fi

/* A vote counts in the round that asked for it. One of a node in quarantine may count later, when
 * the answer comes in after the quarantine. */
inline vote(c, k)
{
#if CRASHES
#if defined(NO_RESTART_RULE)    /* MUTANT */
	node[k].yes = node[k].yes | flag(c);
#elif defined(NO_RUNID_CHECK)   /* MUTANT: who knew the process before takes it for the same */
	if
	:: node[k].fresh && !(node[k].met & flag(c)) -> node[k].later = node[k].later | flag(c)
	:: else -> node[k].yes = node[k].yes | flag(c)
	fi;
#else
	if
	:: node[k].fresh -> node[k].later = node[k].later | flag(c)
	:: else -> node[k].yes = node[k].yes | flag(c)
	fi;
#endif
#else
	node[k].yes = node[k].yes | flag(c);
#endif
}

inline setlock(c, k, r)
{
	/* Released here, and back again? */
#ifdef FREED
	assert(frees_for_good || !(node[k].freed & flag(c)));
#endif
	if
	:: node[k].lock == ours(c) && node[k].round > r -> skip         /* an old message: the key lives longer still */
	:: else -> node[k].round = r
	fi;
	node[k].lock = ours(c);
}

/* Where the validity of a round has ended, no quarantine needs to outlast it any more. */
#if CRASHES
inline passed(c)
{
	n = 0;
	do
	:: n < N ->
		if :: node[n].wait[c] <= client[c].over -> node[n].wait[c] = 0 :: else fi;
		n++
	:: else -> break
	od
}
#else
#define passed(c)       skip
#endif

/* Votes that have been counted, or never will be. */
inline dropvotes(c)
{
	n = 0;
	do
	:: n < N -> node[n].yes = node[n].yes & ~flag(c);
#ifdef REGISTER
		node[n].gotversion[c] = 0; node[n].gotvalue[c] = 0; node[n].back = node[n].back & ~flag(c);
#endif
#if CRASHES
		node[n].later = node[n].later & ~flag(c);
#endif
		n++
	:: else -> break
	od
}

/* A new round counts its own votes only: those before may be for keys that end sooner. */
inline newround(c)
{
	client[c].sent++;
	client[c].number[client[c].sent] = p;
#ifndef CARRY_VOTES             /* MUTANT */
	dropvotes(c);
#endif
}

#ifdef REGISTER
/* A holder is told that its save is there. Then every later holder must have been given it. */
#ifdef LATE_SAVE                        /* MUTANT: also when the lease has ended meanwhile */
#define confirmable(c)  true
#else
#define confirmable(c)  valid(c)
#endif

inline dropkept(c)
{
	n = 0;
	do
	:: n < N -> node[n].kept = node[n].kept & ~flag(c); n++
	:: else -> break
	od
}
#endif

/* The end of an acquisition, as far as its client is concerned. Its messages live on. When its
 * keys may expire is of no interest any more, so they may from now on: that is more than can
 * happen, and fewer states. */
inline finish(c)
{
	client[c].phase = done;
	client[c].over = client[c].sent;
	client[c].good = 0;
	dropvotes(c);
	passed(c);
#ifdef REGISTER
	if :: !client[c].wrote -> client[c].value = 0 :: else fi;
	client[c].confirmed = client[c].confirmed || !confirmable(c);
	if :: client[c].confirmed -> dropkept(c); client[c].missed = 0 :: else fi;
#endif
}

#define yes(c, k)       ((node[k].yes >> (c)) & 1)
#ifdef EARLY_DECISION           /* MUTANT: one vote, and an answer of any kind from the others */
#define won(c)          (yes(c, 0) + yes(c, 1) + yes(c, 2) >= 1)
#else
#define won(c)          (yes(c, 0) + yes(c, 1) + yes(c, 2) >= QUORUM)
#endif

/* An acquisition counts if validity is left. */
#ifdef NO_VALIDITY_CHECK        /* MUTANT */
#define intime(c)       true
#else
#define intime(c)       (client[c].over < client[c].sent)
#endif

/* Nobody else holds a valid lease. */
inline alone(c)
{
	i = 0;
	do
	:: i < C ->
		assert(mutual_exclusion || i == (c) || !valid(i));
		i++
	:: else -> break
	od;
}

inline grant(c)
{
	client[c].good = client[c].sent;
	client[c].token = client[c].number[client[c].sent] - (W - 1);
	client[c].phase = held;
	dropvotes(c);
	alone(c);
	assert(token_order || client[c].token > granted);
	granted = client[c].token;
#ifdef REGISTER
	/* Values are named by the version that they were first saved under. */
	assert(register_read || client[c].value >= settled);
	settled = client[c].value;
	i = 0;
	do
	:: i < C ->
		client[i].missed = client[i].missed ||
			(i != (c) && client[i].saved && !client[i].confirmed && client[c].value < 2 * numberof(i) + 1);
		i++
	:: else -> break
	od;
#endif
}

/* The order of nodes means nothing. */
#ifdef FREED
#define whatfreed(k)    node[k].freed
#define isfreed(c, k)   node[k].freed = node[k].freed | flag(c)
#define nonefreed(k)    node[k].freed = 0
#else
#define whatfreed(k)    0
#define isfreed(c, k)   skip
#define nonefreed(k)    skip
#endif
#define key(k)  ((((((node[k].lock << 3) | node[k].round) << 4) | node[k].fence) << 8) | (node[k].yes << 4) | whatfreed(k))

#define swapbytes(x, y) t = x; x = y; y = t

inline swap(a, b)
{
	swapbytes(node[a].lock, node[b].lock);
	swapbytes(node[a].round, node[b].round);
	swapbytes(node[a].fence, node[b].fence);
	swapbytes(node[a].yes, node[b].yes);
#ifdef FREED
	swapbytes(node[a].freed, node[b].freed);
#endif
#if CRASHES
	swapbytes(node[a].fresh, node[b].fresh);
	swapbytes(node[a].later, node[b].later);
	i = 0;
	do
	:: i < C -> swapbytes(node[a].wait[i], node[b].wait[i]); i++
	:: else -> break
	od;
#ifdef NO_RUNID_CHECK
	swapbytes(node[a].met, node[b].met);
#endif
#endif
#ifdef REGISTER
	swapbytes(node[a].version, node[b].version);
	swapbytes(node[a].value, node[b].value);
	swapbytes(node[a].kept, node[b].kept);
	swapbytes(node[a].back, node[b].back);
	i = 0;
	do
	:: i < C ->
		swapbytes(node[a].gotversion[i], node[b].gotversion[i]);
		swapbytes(node[a].gotvalue[i], node[b].gotvalue[i]);
		i++
	:: else -> break
	od;
#endif
}

/* A second key for what the first has no room for, so that equal means equal. */
#if CRASHES
#define key2(k) ((node[k].fresh << 16) | (node[k].later << 12) | (node[k].wait[0] << 8) | (node[k].wait[1] << 4) | node[k].wait[C - 1])
#elif defined(REGISTER)
#define key2(k) ((node[k].version << 24) | (node[k].value << 16) | (node[k].kept << 12) | (node[k].back << 8) | (node[k].gotversion[0] << 4) | node[k].gotversion[1])
#else
#define key2(k) 0
#endif

#define inorder(a, b)   (key(a) < key(b) || (key(a) == key(b) && key2(a) <= key2(b)))

inline sort(a, b) { if :: inorder(a, b) -> skip :: else -> swap(a, b) fi }

/* What happens. Each of these is one step. ---------------------------------------------------- */

/* A proposal: the first, or one more within the attempt. Clients begin in the order of their
 * names, because which name an acquisition has means nothing. */
#define first(c)        (client[c].phase == idle && ((c) == 0 || client[(c) - ((c) > 0)].phase != idle))
#define again(c)        (client[c].phase == asking && client[c].sent < P)

#if CRASHES && !defined(CLOCKS_DISAGREE)   /* MUTANT of an assumption: by more than a quarantine */
#define recent(v)       ((v) - (W - 1) > before)
#else
#define recent(v)       true
#endif
#ifdef STALE_PROPOSAL           /* MUTANT: one token for all rounds of an attempt */
#define proposable(c, v)        (client[c].sent == 0 && recent(v) || client[c].sent > 0 && v == client[c].number[client[c].sent])
#else
#define proposable(c, v)        (recent(v) && v >= client[c].number[client[c].sent] + W)
#endif

#define PROPOSE(c, v) \
	:: d_step { (first(c) || again(c)) && v >= W && proposable(c, v) -> \
		p = v; newround(c); client[c].proposals = client[c].sent; client[c].phase = asking; \
		printf("step: client %d proposes %d\n", c, v) }

#define ACQUIRE(c, k, r) \
	:: d_step { r <= client[c].proposals && \
		acquirable_by(ours(c), client[c].number[r], node[k].lock, node[k].fence) -> \
		setlock(c, k, r); raise(node[k].fence, stored(client[c].number[r])); \
		if :: r == client[c].sent && client[c].phase == asking && intime(c) -> vote(c, k); remember(c, k) :: else fi; \
		printf("step: node %d accepts proposal %d of client %d\n", k, r, c) }

#ifndef REGISTER
#define remember(c, k)  skip

#define WIN(c) \
	:: d_step { client[c].phase == asking && won(c) && intime(c) -> \
		grant(c); printf("step: client %d is granted token %d\n", c, client[c].token) }
#endif

/* Given up, for whatever reason, at any time: the attempt is withdrawn on all nodes. */
#ifdef NO_WITHDRAW              /* MUTANT */
#define WITHDRAW(c) \
	:: d_step { (client[c].phase == asking || client[c].phase == writing) -> finish(c); \
		printf("step: client %d gives up\n", c) }
#else
#define WITHDRAW(c) \
	:: d_step { (client[c].phase == asking || client[c].phase == writing) -> finish(c); client[c].released = 1; \
		printf("step: client %d gives up and withdraws\n", c) }
#endif

/* An extension keeps its number or raises it, as decision 0001 allows. */
#define EXTEND(c, v) \
	:: d_step { valid(c) && client[c].sent < client[c].proposals + E && v >= client[c].number[client[c].sent] -> \
		p = v; newround(c); printf("step: client %d extends with number %d\n", c, v) }

#define HEAL(c, k, r) \
	:: d_step { r > client[c].proposals && r <= client[c].sent && \
		extendable_by(ours(c), client[c].number[r], node[k].lock, node[k].fence) -> \
		setlock(c, k, r); raise(node[k].fence, client[c].number[r]); \
		if :: r == client[c].sent && client[c].phase == held && client[c].good < r -> vote(c, k) :: else fi; \
		printf("step: node %d accepts extension %d of client %d\n", k, r - client[c].proposals, c) }

/* It counts while the lease is valid, and then nobody has been granted the name since. */
#ifdef LATE_EXTENSION           /* MUTANT */
#define prolongable(c)  (client[c].over < client[c].sent)
#else
#define prolongable(c)  valid(c)
#endif
#define PROLONG(c) \
	:: d_step { client[c].phase == held && client[c].sent > client[c].proposals && client[c].good < client[c].sent && won(c) && prolongable(c) -> \
		client[c].good = client[c].sent; dropvotes(c); alone(c); \
		assert(token_order || client[c].token == granted); \
		printf("step: client %d has its lease prolonged\n", c) }

/* Handed to the next waiter in the process, with the next token of the range, and no message. */
#define HANDOVER(c) \
	:: d_step { valid(c) && client[c].token < client[c].number[client[c].proposals] -> \
		client[c].token++; assert(token_order || client[c].token > granted); granted = client[c].token; \
		printf("step: client %d hands its lease on with token %d\n", c, client[c].token) }

#define RELEASE(c) \
	:: d_step { client[c].phase == held -> finish(c); client[c].released = 1; \
		printf("step: client %d releases\n", c) }

#ifdef NO_OWNER_CHECK_RELEASE   /* MUTANT */
#define deletes(c, k)   true
#else
#define deletes(c, k)   (node[k].lock == ours(c))
#endif
#if defined(RELEASE_KEEPS_FENCE)        /* MUTANT */
#define overhere(c, k)  skip
#elif defined(RELEASE_TRUSTS_LOCK)      /* MUTANT */
/* Where the lock is ours, the fence is taken to be there already unless an extension has
 * raised the number; but the lock may be from the first proposal, and the second on its way. */
#define overhere(c, k) \
	if \
	:: node[k].lock == ours(c) && !(client[c].token > 0 && client[c].number[client[c].sent] > client[c].number[client[c].proposals]) -> skip \
	:: else -> raise(node[k].fence, client[c].number[client[c].sent]) \
	fi
#else
#define overhere(c, k)  raise(node[k].fence, client[c].number[client[c].sent])
#endif
#define FREE(c, k) \
	:: d_step { client[c].released -> \
		overhere(c, k); \
		if :: deletes(c, k) -> node[k].lock = 0; node[k].round = 0 :: else fi; \
		isfreed(c, k); \
		printf("step: node %d carries out the release of client %d\n", k, c) }

#define PASS(c) \
	:: d_step { client[c].over < client[c].sent -> client[c].over++; passed(c); \
		if :: client[c].phase == asking && !intime(c) -> dropvotes(c) :: else fi; \
		printf("step: validity of round %d of client %d ends\n", client[c].over, c) }

#ifdef NO_EXPIRY                /* MUTANT: a lock without a TTL */
#define expirable(k)    false
#else
#define expirable(k)    (node[k].lock != 0 && node[k].round <= client[node[k].lock - 1].over)
#endif
#define EXPIRE(k) \
	:: d_step { expirable(k) -> node[k].lock = 0; node[k].round = 0; \
		printf("step: lock of node %d expires\n", k) }

#if CRASHES
#ifdef NO_RUNID_CHECK
#define meets(c, k)     if :: client[c].phase != idle -> node[k].met = node[k].met | flag(c) :: else fi
#else
#define meets(c, k)     skip
#endif
#define CRASH(k) \
	:: d_step { crashes < CRASHES -> \
		crashes++; node[k].lock = 0; node[k].round = 0; node[k].fence = 0; nonefreed(k); \
		node[k].fresh = 1; node[k].later = 0; \
		i = 0; \
		do \
		:: i < C -> \
			meets(i, k); \
			if :: client[i].over < client[i].sent -> node[k].wait[i] = client[i].sent :: else -> node[k].wait[i] = 0 fi; \
			j = 0; do :: j <= client[i].sent -> raise(before, client[i].number[j]); j++ :: else -> break od; \
			i++ \
		:: else -> break \
		od; \
		printf("step: node %d restarts empty\n", k) }

/* The quarantine outlasts every round that had begun when the node crashed. */
#if C == 2
#define outlasted(k)    (node[k].wait[0] == 0 && node[k].wait[1] == 0)
#else
#define outlasted(k)    (node[k].wait[0] == 0 && node[k].wait[1] == 0 && node[k].wait[2] == 0)
#endif
#define SERVE(k) \
	:: d_step { node[k].fresh && outlasted(k) -> \
		node[k].fresh = 0; node[k].yes = node[k].yes | node[k].later; node[k].later = 0; \
		printf("step: quarantine of node %d ends\n", k) }
#else
#define CRASH(k)
#define SERVE(k)
#endif

/* The register. A version is token * 2, and 1 more for the holder's own save than for what it has
 * written back. --------------------------------------------------------------------------------- */

#ifdef REGISTER
#define remember(c, k) \
	node[k].gotversion[c] = node[k].version; node[k].gotvalue[c] = node[k].value

/* The first quorum of answers decides, so any two of them may be it, or all three. */
#define WIN(c)  READ(c, 0, 1, 1) READ(c, 0, 2, 2) READ(c, 1, 2, 2) READ(c, 0, 1, 2)

#define READ(c, k, l, q) \
	:: d_step { client[c].phase == asking && intime(c) && yes(c, k) && yes(c, l) && yes(c, q) -> \
		m = newest(c, k, newest(c, l, q)); \
		client[c].value = node[m].gotvalue[c]; \
		if \
		:: agreed(c, k, l, q) -> grant(c) \
		:: else -> client[c].phase = writing; client[c].wrote = 1 \
		fi; \
		dropvotes(c); \
		printf("step: client %d reads %d\n", c, client[c].value) }

#ifdef READ_ANY                 /* MUTANT: not the newest */
#define newest(c, k, l) (k)
#else
#define newest(c, k, l) (node[k].gotversion[c] >= node[l].gotversion[c] -> (k) : (l))
#endif
#ifdef NO_WRITE_BACK            /* MUTANT */
#define agreed(c, k, l, q)      true
#else
#define agreed(c, k, l, q)      (node[k].gotversion[c] == node[l].gotversion[c] && node[l].gotversion[c] == node[q].gotversion[c])
#endif

#if defined(SAVE_IGNORES_FENCE)         /* MUTANT */
#define unfenced(c, k)  true
#else
#define unfenced(c, k)  (node[k].lock == ours(c) || node[k].fence <= numberof(c))
#endif
#ifdef SAVE_IGNORES_VERSION             /* MUTANT */
#define newer(k, v)     true
#else
#define newer(k, v)     (node[k].version <= (v))
#endif

#define WRITEBACK(c, k) \
	:: d_step { client[c].wrote && unfenced(c, k) && newer(k, 2 * numberof(c)) -> \
		node[k].version = 2 * numberof(c); node[k].value = client[c].value; \
		raise(node[k].fence, numberof(c)); \
		if :: client[c].phase == writing -> node[k].back = node[k].back | flag(c) :: else fi; \
		printf("step: node %d stores what client %d has written back\n", k, c) }

#define onback(c, k)    ((node[k].back >> (c)) & 1)
#define WRITTEN(c) \
	:: d_step { client[c].phase == writing && intime(c) && \
		onback(c, 0) + onback(c, 1) + onback(c, 2) >= QUORUM -> \
		grant(c); printf("step: client %d is granted token %d\n", c, client[c].token) }

/* A holder that extends puts its state back on nodes that have an older one (Lease.heal). */
#define PUTBACK(c) \
	:: d_step { valid(c) && client[c].sent > client[c].proposals && !client[c].wrote && client[c].value > 0 -> \
		client[c].wrote = 1; printf("step: client %d puts its state back\n", c) }

#define SAVE(c) \
	:: d_step { valid(c) && !client[c].saved -> client[c].saved = 1; \
		printf("step: client %d saves %d\n", c, 2 * numberof(c) + 1) }

#define STORE(c, k) \
	:: d_step { client[c].saved && unfenced(c, k) && newer(k, 2 * numberof(c) + 1) -> \
		node[k].version = 2 * numberof(c) + 1; node[k].value = 2 * numberof(c) + 1; \
		raise(node[k].fence, numberof(c)); \
		if :: !client[c].confirmed -> node[k].kept = node[k].kept | flag(c) :: else fi; \
		printf("step: node %d stores the save of client %d\n", k, c) }

#define kept(c, k)      ((node[k].kept >> (c)) & 1)
#define CONFIRM(c) \
	:: d_step { confirmable(c) && client[c].saved && !client[c].confirmed && kept(c, 0) + kept(c, 1) + kept(c, 2) >= QUORUM -> \
		assert(register_fenced || !client[c].missed); \
		client[c].confirmed = 1; dropkept(c); raise(settled, 2 * numberof(c) + 1); \
		printf("step: client %d is told that its save is there\n", c) }

#define STATE(c) \
	WRITEBACK(c, 0) WRITEBACK(c, 1) WRITEBACK(c, 2) WRITTEN(c) PUTBACK(c) \
	SAVE(c) STORE(c, 0) STORE(c, 1) STORE(c, 2) CONFIRM(c)
#else
#define STATE(c)
#endif

/* When everything is over. They change nothing. ------------------------------------------------ */

/* From here on no fault happens any more, but one node is dead. When every TTL and quarantine has
 * passed, a client whose clock is as slow as can be acquires the name, alone, in two rounds. */
#ifdef PROPOSE_NOT_ABOVE        /* MUTANT: the highest fence itself */
#define answerto(fence) (fence + W - 1)
#else
#define answerto(fence) (fence + W)
#endif
inline solo(dead)
{
	votes = 0; floor = 0; n = 0;
	do
	:: n < N && n != dead -> raise(floor, node[n].fence); n++
	:: n < N && n == dead -> n++
	:: else -> break
	od;
	p = answerto(floor);
	n = 0;
	do
	:: n < N && n != dead ->
		t = node[n].lock;
#ifndef NO_EXPIRY
		t = 0;
#endif
		if :: acquirable_by(C + 1, p, t, node[n].fence) -> votes++ :: else fi;
		n++
	:: n < N && n == dead -> n++
	:: else -> break
	od;
	assert(acquirable || votes >= QUORUM);
}

/* Where every client has come to its end, and no message is under way any more, nothing is left
 * on any node that somebody would have to wait out. */
#if C == 2
#define alldone (client[0].phase == done && client[1].phase == done)
#else
#define alldone (client[0].phase == done && client[1].phase == done && client[2].phase == done)
#endif
inline tidy()
{
	n = 0;
	do
	:: n < N && node[n].lock > 0 -> assert(nothing_left || client[node[n].lock - 1].released); n++
	:: n < N && node[n].lock == 0 -> n++
	:: else -> break
	od
}

#define LOOK \
	:: d_step { \
		solo(0); solo(1); solo(2); \
		if :: alldone -> tidy() :: else fi }

/* All of it. ------------------------------------------------------------------------------------ */

#if K == 2
#define EACH_NUMBER(X, c)       X(c, 1) X(c, 2)
#elif K == 3
#define EACH_NUMBER(X, c)       X(c, 1) X(c, 2) X(c, 3)
#elif K == 4
#define EACH_NUMBER(X, c)       X(c, 1) X(c, 2) X(c, 3) X(c, 4)
#elif K == 5
#define EACH_NUMBER(X, c)       X(c, 1) X(c, 2) X(c, 3) X(c, 4) X(c, 5)
#elif K == 6
#define EACH_NUMBER(X, c)       X(c, 1) X(c, 2) X(c, 3) X(c, 4) X(c, 5) X(c, 6)
#endif

#define EACH_NODE(X, c, r)      X(c, 0, r) X(c, 1, r) X(c, 2, r)

#if P == 1
#define ACQUIRES(c)     EACH_NODE(ACQUIRE, c, 1)
#else
#define ACQUIRES(c)     EACH_NODE(ACQUIRE, c, 1) EACH_NODE(ACQUIRE, c, 2)
#endif

/* An extension is the round after the proposals, of which there may have been one or two. */
#if R == P
#define EXTENDS(c)
#elif R == 2
#define EXTENDS(c)      EACH_NUMBER(EXTEND, c) EACH_NODE(HEAL, c, 2) PROLONG(c)
#elif R == 3
#define EXTENDS(c)      EACH_NUMBER(EXTEND, c) EACH_NODE(HEAL, c, 2) EACH_NODE(HEAL, c, 3) PROLONG(c)
#else
#define EXTENDS(c)      EACH_NUMBER(EXTEND, c) EACH_NODE(HEAL, c, 2) EACH_NODE(HEAL, c, 3) EACH_NODE(HEAL, c, 4) PROLONG(c)
#endif

#if W == 1
#define HANDOVERS(c)
#else
#define HANDOVERS(c)    HANDOVER(c)
#endif

#define CLIENT(c) \
	EACH_NUMBER(PROPOSE, c) ACQUIRES(c) WIN(c) WITHDRAW(c) EXTENDS(c) HANDOVERS(c) \
	RELEASE(c) FREE(c, 0) FREE(c, 1) FREE(c, 2) PASS(c) STATE(c)

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
		EXPIRE(0) EXPIRE(1) EXPIRE(2)
		CRASH(0) CRASH(1) CRASH(2)
		SERVE(0) SERVE(1) SERVE(2)
		LOOK
		fi;
		d_step {
#ifndef NAMED_NODES
			sort(0, 1); sort(1, 2); sort(0, 1);
#endif
			i = 0; j = 0; n = 0; m = 0; p = 0; votes = 0; floor = 0; t = 0
		}
	}
	od
}
