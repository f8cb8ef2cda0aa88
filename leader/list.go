package leader

import "github.com/quorate/quorate/redlock"

// TermOf tells whether a name that the nodes know (redlock.Locker.List, Inspect) is that of an election,
// and who leads, as Elector.Leader does for one. Without a leader the Term has the Name alone. An election
// that nobody has won within the fence TTL is not known as one.
func TermOf(status redlock.Status) (term Term, ok bool) {
	r, err := parseRecord(status.State)
	switch {
	case err != nil:
		return Term{}, false
	case status.Holder == "", r.Lease == nonceOf(status.Holder) && r.Phase == ended:
		return Term{Name: status.Name}, true
	case r.Lease != nonceOf(status.Holder): // who holds the lease has not published its term yet
		return Term{Name: status.Name, Leader: identityOf(status.Holder)}, true
	}
	return r.term(status.Name), true
}
