package fencing_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// inProcess is a connection to a handler without a socket, which fake time could not wait for.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	// The other side does not share the caller's context.
	p.ServeHTTP(w, req.Clone(context.Background()))
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

// service answers with the token that it finds for sku:42, behind the gate.
func (w *world) service(gate fencing.Gate, opts ...fencing.HandlerOption) *http.Client {
	w.t.Helper()
	h, err := fencing.NewHandler(gate, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		token, ok := fencing.TokenFor(r.Context(), "sku:42")
		if !ok {
			http.Error(rw, "hold sku:42", http.StatusConflict)
			return
		}
		if err := w.gate.Set(r.Context(), "sku:42", token, "stock", "written", 0); err != nil {
			http.Error(rw, err.Error(), http.StatusPreconditionFailed)
		}
	}), opts...)
	require.NoError(w.t, err)
	return &http.Client{Transport: &fencing.Transport{Base: inProcess{h}}}
}

// put makes a request, and gives the status and the body.
func put(ctx context.Context, t *testing.T, client *http.Client, headers ...string) (int, string, *http.Response) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://stock/42", strings.NewReader("x"))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, strings.TrimSpace(string(body)), resp
}

func TestTheTokenTravelsWithTheRequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.service(w.gate)
		require.NoError(t, w.guard("a", allow).Do(t.Context(), "sku:42", func(ctx context.Context, token redlock.Token) error {
			status, body, resp := put(ctx, t, client)
			assert.Equal(t, http.StatusOK, status, body)
			require.NoError(t, fencing.CheckResponse(resp))
			require.ErrorIs(t, w.gate.Admit(ctx, "sku:42", token-1), fencing.ErrStaleToken, "the service's gate has seen it")
			return nil
		}))
		assert.Equal(t, "written", w.get("stock"))
		require.NoError(t, w.guard("a", allow).DoAll(t.Context(), []string{"b,c", "sku:42", "a b/ü\n"}, func(ctx context.Context, tokens fencing.Tokens) error {
			status, body, _ := put(ctx, t, client)
			assert.Equal(t, http.StatusOK, status, body)
			for resource, token := range tokens {
				require.ErrorIs(t, w.gate.Admit(ctx, resource, token-1), fencing.ErrStaleToken)
			}
			return nil
		}))
		require.NoError(t, w.locker("b").Do(t.Context(), "sku:42", func(ctx context.Context, _ *redlock.Lease) error {
			status, body, _ := put(ctx, t, client)
			assert.Equal(t, http.StatusOK, status, body)
			return nil
		}), "a lease without a guard will do")
	})
}

func TestTheRequestOfAStaleCallerIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.service(w.gate)
		err := w.guard("a", allow).Do(t.Context(), "sku:42", func(ctx context.Context, token redlock.Token) error {
			require.NoError(t, w.gate.Admit(ctx, "sku:42", token+1))
			status, body, resp := put(ctx, t, client)
			assert.Equal(t, http.StatusPreconditionFailed, status)
			assert.Contains(t, body, "another holds the resource now, stop the work")
			var stale *fencing.StaleError
			err := fencing.CheckResponse(resp)
			require.ErrorAs(t, err, &stale)
			assert.Equal(t, fencing.StaleError{Resource: "sku:42", Token: token, Seen: token + 1}, *stale)
			return err
		})
		require.ErrorIs(t, err, redlock.ErrStaleToken)
		require.Zero(t, w.data.Exists(t.Context(), "stock").Val(), "nothing was written")
		require.NoError(t, fencing.CheckResponse(nil))
		require.NoError(t, fencing.CheckResponse(&http.Response{StatusCode: http.StatusPreconditionFailed}), "an If-Match of somebody else's")
		for _, odd := range []string{"%", "a", "x%20y"} {
			require.ErrorIs(t, fencing.CheckResponse(&http.Response{StatusCode: http.StatusPreconditionFailed,
				Header: http.Header{fencing.HeaderResource: {odd}}}), fencing.ErrStaleToken)
		}
	})
}

func TestARequestOfAHolderThatHasLostItsLeaseIsNotSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := &http.Client{Transport: &fencing.Transport{Base: inProcess{http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			t.Error("was sent")
		})}}}
		for _, resources := range [][]string{{"x"}, {"x", "y"}} {
			err := w.guard("a", allow).DoAll(t.Context(), resources, func(ctx context.Context, _ fencing.Tokens) error {
				w.dropped("x")
				<-ctx.Done()
				req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPut, "http://stock/42", nil)
				require.NoError(t, err)
				_, err = client.Do(req)
				require.ErrorContains(t, err, "not sent")
				return err
			})
			require.ErrorIs(t, err, redlock.ErrLeaseLost)
			time.Sleep(ttl)
		}
	})
}

func TestARequestWithoutATokenIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		status, body, _ := put(t.Context(), t, w.service(w.gate))
		assert.Equal(t, http.StatusPreconditionRequired, status)
		assert.Contains(t, body, "make it under a guard")

		picky := w.service(w.gate, fencing.WithResources(func(r *http.Request) []string { return []string{"sku:" + r.URL.Path[1:]} }))
		require.NoError(t, w.guard("a", allow).Do(t.Context(), "sku:43", func(ctx context.Context, _ redlock.Token) error {
			status, body, _ := put(ctx, t, picky)
			assert.Equal(t, http.StatusPreconditionRequired, status)
			assert.Contains(t, body, `no token for "sku:42"`)
			status, _, _ = put(ctx, t, w.service(w.gate))
			assert.Equal(t, http.StatusConflict, status, "the code behind asks for the token of what it changes")
			return nil
		}))
		require.NoError(t, w.guard("a", allow).Do(t.Context(), "sku:42", func(ctx context.Context, _ redlock.Token) error {
			status, body, _ := put(ctx, t, picky)
			assert.Equal(t, http.StatusOK, status, body)
			return nil
		}))
	})
}

func TestHeadersThatCannotBeReadAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		refuses := fencing.GateFunc(func(context.Context, string, redlock.Token) error {
			t.Error("the gate was asked")
			return nil
		})
		client := w.service(refuses)
		const res, tok = fencing.HeaderResource, fencing.HeaderToken
		for _, headers := range [][]string{
			{res, "a"}, {tok, "1"}, {res, "a", tok, ""}, {res, "", tok, "1"}, {res, "a,b", tok, "1"}, {res, "a", tok, "1,2"},
			{res, "a,a", tok, "1,2"}, {res, "a,%61", tok, "1,2"}, {res, "%zz", tok, "1"}, {res, "a", tok, "0"}, {res, "a", tok, "-1"},
			{res, "a", tok, "+1"}, {res, "a", tok, "01"}, {res, "a", tok, "1e3"}, {res, "a", tok, "9007199254740992"},
			{res, "a", tok, "99999999999999999999"}, {res, strings.Repeat("x", 513), tok, "1"},
			{res, strings.Repeat("x,", 64) + "x", tok, strings.Repeat("1,", 64) + "1"},
		} {
			status, body, _ := put(t.Context(), t, client, headers...)
			assert.Equal(t, http.StatusBadRequest, status, "%v", headers)
			assert.Contains(t, body, "invalid header")
			assert.Less(t, len(body), 1000)
		}
		for _, err := range []error{fencing.ErrInvalidToken, redlock.ErrInvalidName} {
			status, _, _ := put(t.Context(), t, w.service(fencing.GateFunc(func(context.Context, string, redlock.Token) error { return err })), res, "a", tok, "1")
			assert.Equal(t, http.StatusBadRequest, status)
		}
		status, _, _ := put(t.Context(), t, w.service(w.gate), res, "x, sku%3A42", tok, "1 ,2")
		assert.Equal(t, http.StatusOK, status, "as a proxy may join them")
	})
}

func TestAGateThatCannotBeAskedLetsNobodyPass(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var log bytes.Buffer
		down := fencing.GateFunc(func(context.Context, string, redlock.Token) error { return errors.New("dial 10.0.0.7: refused") })
		client := w.service(down, fencing.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		status, body, resp := put(t.Context(), t, client, fencing.HeaderResource, "sku:42", fencing.HeaderToken, "33")
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.Contains(t, body, "nothing was done, try again")
		assert.NotContains(t, body, "10.0.0.7", "that is for the operator")
		assert.Contains(t, log.String(), "10.0.0.7")
		require.NoError(t, fencing.CheckResponse(resp))
	})
}

func TestATransportLeavesOtherRequestsAsTheyAre(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var seen http.Header
		transport := &fencing.Transport{Base: inProcess{http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header })}}
		put(t.Context(), t, &http.Client{Transport: transport}, "X-Other", "1")
		assert.Equal(t, http.Header{"X-Other": {"1"}}, seen)
		require.NoError(t, w.guard("a", allow).Do(t.Context(), "sku:42", func(ctx context.Context, token redlock.Token) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://stock/", nil)
			require.NoError(t, err)
			req.Header.Set(fencing.HeaderToken, "7")
			resp, err := transport.RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, http.Header{fencing.HeaderToken: {"7"}}, req.Header, "a RoundTripper changes no request")
			tokens, err := fencing.ParseHeader(seen)
			require.NoError(t, err)
			assert.Equal(t, fencing.Tokens{"sku:42": token}, tokens)
			return nil
		}))
	})
}

func TestBadInputOfAHandler(t *testing.T) {
	next := http.NotFoundHandler()
	for says, make := range map[string]func() (http.Handler, error){
		"the gate is nil":     func() (http.Handler, error) { return fencing.NewHandler(nil, next) },
		"gate is nil; w":      func() (http.Handler, error) { return fencing.NewHandler((*fencing.RedisGate)(nil), next) },
		"the handler is nil":  func() (http.Handler, error) { return fencing.NewHandler(allow, nil) },
		"handler is nil":      func() (http.Handler, error) { return fencing.NewHandler(allow, http.HandlerFunc(nil)) },
		"a nil HandlerOption": func() (http.Handler, error) { return fencing.NewHandler(allow, next, nil) },
	} {
		h, err := make()
		require.Nil(t, h)
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorContains(t, err, says)
	}
}

// A service may pass a request on to another, with the token that it came with.
func TestTheTokenOfARequestGoesOnToTheNextService(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		last := w.service(w.gate)
		h, err := fencing.NewHandler(allow, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			token, ok := fencing.TokenFrom(r.Context())
			assert.True(t, ok)
			assert.EqualValues(t, 33, token)
			status, body, _ := put(r.Context(), t, last)
			assert.Equal(t, http.StatusOK, status, body)
		}))
		require.NoError(t, err)
		put(t.Context(), t, &http.Client{Transport: inProcess{h}}, fencing.HeaderResource, "sku:42", fencing.HeaderToken, "33")
		assert.Equal(t, "written", w.get("stock"))
	})
}
