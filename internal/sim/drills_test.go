package sim

import (
	"context"
	"time"

	"github.com/quorate/quorate/redlock"
)

// The drills come when the random faults are over and all is well. Each strikes one fault and
// asks for one promise of liveness, which among random faults nobody could ask for.

// drillName is a name that nobody else uses.
const drillName = "drill"

func (l *leases) drills(ctx context.Context) {
	w := l.w
	l.books[drillName] = newBook()
	for i := range w.fleet.Len() { // the last faults may have left it wrong
		w.fleet.ClockRate(i, 1)
	}
	if w.fleet.Len() >= 3 {
		l.drillHungMinority(ctx)
		l.drillFailedAttempt(ctx)
		l.drillMinorityValue(ctx)
		l.drillRollingRestart(ctx, "drill/saved", "kept")
		l.drillRollingRestart(ctx, "drill/bare", "")
	}
	l.drillLateSave(ctx)
	l.drillDeadHolder(ctx)
	l.drillForgottenFences(ctx)
}

// A minority that hangs delays nobody, and a node that was hung hears of a release.
func (l *leases) drillHungMinority(ctx context.Context) {
	w, h := l.w, l.w.hosts[0]
	w.fleet.Hang(0)
	begin := time.Now()
	if lease := l.have(ctx, h, drillName); lease != nil {
		if err := lease.Extend(ctx); err != nil {
			w.violated("extend while one node hangs: %v", err)
		}
		_ = l.save(lease, "drill")
		l.letGo(ctx, lease)
	}
	if took := time.Since(begin); took >= redlock.DefaultNodeTimeout {
		w.violated("a cycle took %v while one node hung", took)
	}
	time.Sleep(time.Second) // the node is found to hang
	w.fleet.Resume(0)
	time.Sleep(2 * time.Second)
	l.isFree(drillName, "after it hung and resumed")
}

// An attempt that finds no quorum leaves nothing where it was accepted.
func (l *leases) drillFailedAttempt(ctx context.Context) {
	w, h := l.w, l.w.hosts[0]
	client := w.fleet.Host(h.name)
	for i := 1; i < w.fleet.Len(); i++ {
		client.Partition(i)
	}
	if _, err := h.locker.TryAcquire(ctx, drillName); err == nil {
		w.violated("one node of %d granted %s", w.fleet.Len(), drillName)
	}
	time.Sleep(100 * time.Millisecond)
	l.isFree(drillName, "after an attempt that failed")
	client.Heal()
	time.Sleep(3 * time.Second) // until all nodes are trusted again
}

// A value that one node has, because its save found no quorum, is read by everybody from now on
// once somebody has read it, though that node is gone.
func (l *leases) drillMinorityValue(ctx context.Context) {
	w, h, rival := l.w, l.w.hosts[0], l.w.hosts[1]
	lease := l.have(ctx, h, drillName)
	if lease == nil {
		return
	}
	client := w.fleet.Host(h.name)
	for i := 1; i < w.fleet.Len(); i++ {
		client.Partition(i)
	}
	if l.save(lease, "minority") == nil {
		w.violated("a save was confirmed by one node of %d", w.fleet.Len())
	}
	client.Heal()
	time.Sleep(3 * time.Second) // until all nodes are trusted again
	l.letGo(ctx, lease)

	n := w.fleet.Len()
	for i := n/2 + 1; i < n; i++ { // so that the node is asked
		w.fleet.Stop(i)
	}
	reader := l.have(ctx, rival, drillName)
	if reader == nil {
		return
	}
	if got := string(reader.State()); got != "minority" {
		w.violated("%q was read where a quorum answered, and one node of it had another value", got)
	}
	l.letGo(ctx, reader)
	for i := n/2 + 1; i < n; i++ {
		w.fleet.Restart(i)
		w.nodes.restarted(i)
	}
	time.Sleep(redlock.DefaultMaxTTL + 3*time.Second) // until they count again
	w.fleet.Stop(0)
	if next := l.have(ctx, rival, drillName); next != nil {
		if got := string(next.State()); got != "minority" {
			w.violated("%q was read after %q", got, "minority")
		}
		l.letGo(ctx, next)
	}
	w.fleet.Restart(0)
	w.nodes.restarted(0)
	time.Sleep(redlock.DefaultMaxTTL + 3*time.Second)
}

// Tokens grow though every node has forgotten its fence, and the next holder had begun to ask
// before the last one was granted.
func (l *leases) drillForgottenFences(ctx context.Context) {
	w, early, h := l.w, l.w.hosts[1], l.w.hosts[0]
	link := w.fleet.Host(early.name)
	link.Partition()
	granted := make(chan *redlock.Lease, 1)
	go func() {
		lease, err := early.locker.Acquire(ctx, drillName)
		if err != nil {
			w.violated("%s cannot have %s: %v", early.name, drillName, err)
		}
		granted <- lease
	}()
	time.Sleep(10 * time.Second) // more than the clocks of the hosts are apart
	if lease := l.have(ctx, h, drillName); lease != nil {
		l.letGo(ctx, lease)
	}
	for i := range w.fleet.Len() {
		w.forgot(i)
		w.fleet.RestartEmpty(i)
	}
	link.Heal()
	if lease := <-granted; lease != nil {
		l.granted(early, lease) // which looks at the token
		l.letGo(ctx, lease)
	}
}

// A rolling restart of every node, each coming back empty, costs no lease that is extended, nor
// what was saved, if anything was. Steps of before its release that come late find it over.
func (l *leases) drillRollingRestart(ctx context.Context, name string, saved string) {
	w, h := l.w, l.w.hosts[0]
	l.books[name] = newBook()
	w.nodes.record(name)
	lease := l.have(ctx, h, name, redlock.WithAutoExtend(true))
	if lease == nil {
		return
	}
	if saved != "" {
		_ = l.save(lease, saved)
	}
	for i := range w.fleet.Len() {
		w.forgot(i)
		w.fleet.RestartEmpty(i)
		time.Sleep(redlock.DefaultMaxTTL + 2*time.Second)
	}
	if err := lease.Err(); err != nil {
		w.violated("lost in a rolling restart: %v", err)
		return
	}
	for i := range w.fleet.Len() {
		if owner, _ := w.fleet.Get(i, redlock.DefaultKeyPrefix+name); owner != lease.Owner() {
			w.violated("node %d was not healed: it holds %q", i, owner)
		}
	}
	before := w.nodes.recorded()
	l.letGo(ctx, lease)
	time.Sleep(time.Second) // Release waits for a quorum only
	for _, late := range before {
		w.nodes.send(late)
	}
	l.isFree(name, "after steps that came late")
	if next := l.have(ctx, w.hosts[1], name); next != nil {
		if got := string(next.State()); got != saved {
			w.violated("%q was saved, and after a rolling restart %q is there", saved, got)
		}
		l.letGo(ctx, next)
	}
}

// A save that arrives after the next holder was granted the name changes nothing.
func (l *leases) drillLateSave(ctx context.Context) {
	w, h, rival := l.w, l.w.hosts[0], l.w.hosts[1]
	lease := l.have(ctx, h, drillName)
	if lease == nil {
		return
	}
	before := string(lease.State())
	lag := func(d time.Duration) {
		for i := range w.fleet.Len() {
			w.fleet.DelayRequests(i, d)
		}
	}
	// Longer than the client keeps a connection that does not answer.
	lag(2 * redlock.DefaultTTL)
	if err := lease.Save(ctx, []byte("late")); err == nil {
		w.violated("a save was confirmed before any node had it")
	}
	lag(0)
	_ = lease.Release(ctx) // cannot reach the nodes, or only later
	next := l.have(ctx, rival, drillName)
	if next == nil {
		return
	}
	if got := string(next.State()); got != before {
		w.violated("%q was read before it was there", got)
	}
	time.Sleep(2 * redlock.DefaultTTL)
	_ = next.Release(ctx) // has ended by now
	if last := l.have(ctx, rival, drillName); last != nil {
		if got := string(last.State()); got != before {
			w.violated("a save of token %d came after the grant of %d, and %d reads %q", lease.Token(), next.Token(), last.Token(), got)
		}
		l.letGo(ctx, last)
	}
}

// A holder that is cut off knows of its end before anybody else can have the name, and that is
// within the TTL.
func (l *leases) drillDeadHolder(ctx context.Context) {
	w, h, rival := l.w, l.w.hosts[0], l.w.hosts[1]
	lease := l.have(ctx, h, drillName, redlock.WithAutoExtend(true))
	if lease == nil {
		return
	}
	w.fleet.Host(h.name).Partition()
	begin := time.Now()
	next := l.have(ctx, rival, drillName, redlock.WithTTL(redlock.DefaultTTL/2)) // granted checks the rest
	if took := time.Since(begin); took > redlock.DefaultTTL*5/4 {
		w.violated("a holder that was cut off was replaced after %v", took)
	}
	select {
	case <-lease.Context().Done():
	default:
		w.violated("a holder that was cut off has not been told")
	}
	w.fleet.Host(h.name).Heal()
	if next != nil {
		l.letGo(ctx, next)
	}
}

// isFree checks that no node holds a name.
func (l *leases) isFree(name, when string) {
	for i := range l.w.fleet.Len() {
		if owner, held := l.w.fleet.Get(i, redlock.DefaultKeyPrefix+name); held {
			l.w.violated("node %d holds %s of %s %s", i, name, owner, when)
		}
	}
}
