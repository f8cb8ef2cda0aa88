package fencing

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/quorate/quorate/redlock"
)

// A Transport sends the tokens of the guarded section that a request is made in, which it finds in
// the request's context, as the headers HeaderResource and HeaderToken, so that a service with
// NewHandler in front refuses the request of a holder that comes late. Of a request that is made
// elsewhere it changes nothing, and such a service refuses that as well.
//
//	client := &http.Client{Transport: &fencing.Transport{}}
//
// When a lease has ended, the request is not sent, and the error is the lease's. Every host that the
// client asks is told the resources and tokens, redirects included: they are no secrets, but no news
// for strangers either.
type Transport struct {
	Base http.RoundTripper // nil: http.DefaultTransport
}

// RoundTrip sends a request.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := http.DefaultTransport
	if t != nil && t.Base != nil {
		base = t.Base
	}
	tokens := tokensFrom(req.Context())
	if len(tokens) == 0 {
		return base.RoundTrip(req)
	}
	refuse := func(err error) (*http.Response, error) {
		if req.Body != nil {
			_ = req.Body.Close() // as a RoundTripper must, also when it fails
		}
		return nil, fmt.Errorf("fencing: %s %s: not sent: %w", req.Method, req.URL.Redacted(), err)
	}
	for _, lease := range leasesFrom(req.Context()) {
		if err := lease.Err(); err != nil {
			return refuse(err)
		}
	}
	if len(tokens) > maxHeaderTokens {
		return refuse(fmt.Errorf("%w: %d resources, the limit for one request is %d", redlock.ErrInvalidOption, len(tokens), maxHeaderTokens))
	}
	// A RoundTripper must not change the request it is given.
	req = req.Clone(req.Context())
	if req.Header == nil {
		req.Header = http.Header{}
	}
	tokens.SetHeader(req.Header)
	return base.RoundTrip(req)
}

// CheckResponse returns a *StaleError where a service has refused a request because of its token, and
// nil for every other response. It leaves the body alone.
func CheckResponse(resp *http.Response) error {
	if resp == nil || resp.StatusCode != http.StatusPreconditionFailed {
		return nil
	}
	escaped := resp.Header.Get(HeaderResource)
	if escaped == "" {
		return nil // another precondition than ours
	}
	// Refused is refused, whatever of the rest can be read.
	stale := &StaleError{Resource: escaped}
	if resource, err := url.PathUnescape(escaped); err == nil {
		stale.Resource = resource
	}
	if seen, err := parseToken(resp.Header.Get(HeaderToken)); err == nil {
		stale.Seen = seen
	}
	if resp.Request != nil {
		if sent, err := ParseHeader(resp.Request.Header); err == nil {
			stale.Token = sent[stale.Resource]
		}
	}
	return stale
}
