package fencing

import (
	"context"

	"github.com/quorate/quorate/redlock"
)

// TokenFrom returns the token of the lease whose context ctx is, or is made from: in a guarded
// section the token that was admitted, so that code deep inside needs no extra argument. Behind
// NewHandler it is the token of the request.
//
// In a section of DoAll with several resources there is no such one token, and a token of the wrong
// resource would be worse than none: there it returns false, and TokenFor is the one to ask.
func TokenFrom(ctx context.Context) (redlock.Token, bool) {
	lease, held := redlock.LeaseFrom(ctx)
	if t := ticketsFrom(ctx); t != nil && t.lease == lease {
		return t.single()
	}
	if !held {
		return 0, false
	}
	return lease.Token(), true
}

// TokenFor returns the token of this resource: of the guarded section whose context ctx is, or is
// made from, or of one that this section is inside of.
func TokenFor(ctx context.Context, resource string) (redlock.Token, bool) {
	for {
		lease, held := redlock.LeaseFrom(ctx)
		t := ticketsFrom(ctx)
		if held && lease.Name() == resource && (t == nil || t.lease != lease) {
			return lease.Token(), true
		}
		if t == nil {
			return 0, false
		}
		if token, ok := t.tokens[resource]; ok {
			return token, true
		}
		ctx = t.outer
	}
}

// tokensFrom returns the tokens of the innermost section, or of the lease that is further in.
func tokensFrom(ctx context.Context) Tokens {
	lease, held := redlock.LeaseFrom(ctx)
	switch t := ticketsFrom(ctx); {
	case t != nil && t.lease == lease:
		return t.tokens
	case held:
		return Tokens{lease.Name(): lease.Token()}
	}
	return nil
}

// leasesFrom returns the leases of tokensFrom.
func leasesFrom(ctx context.Context) []*redlock.Lease {
	lease, held := redlock.LeaseFrom(ctx)
	switch t := ticketsFrom(ctx); {
	case t != nil && t.lease == lease:
		return t.leases
	case held:
		return []*redlock.Lease{lease}
	}
	return nil
}

type ticketsKey struct{}

// tickets are tokens in a context.
type tickets struct {
	tokens Tokens
	// lease is the innermost one of the context that the tokens were put into, or nil. Where a
	// context has another, that one has come later, and its token is further in than these.
	lease  *redlock.Lease
	leases []*redlock.Lease // of the section; none behind NewHandler
	outer  context.Context  // that of the code around the section
}

func newTickets(ctx, outer context.Context, tokens Tokens, leases ...*redlock.Lease) *tickets {
	lease, _ := redlock.LeaseFrom(ctx)
	return &tickets{tokens: tokens, lease: lease, leases: leases, outer: outer}
}

func (t *tickets) single() (redlock.Token, bool) {
	if len(t.tokens) == 1 {
		for _, token := range t.tokens {
			return token, true
		}
	}
	return 0, false
}

func ticketsFrom(ctx context.Context) *tickets {
	t, _ := ctx.Value(ticketsKey{}).(*tickets)
	return t
}
