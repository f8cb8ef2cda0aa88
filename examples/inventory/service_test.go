package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

func placeOrder(s *service, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/buy", strings.NewReader(body)))
	return w
}

const oneUnit = `{"sku":"` + product + `","quantity":1}`

func TestAnOrderIsAnsweredByWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	s := newShop(t, 3)
	service := &service{seller: s.seller(guarded, 1), logger: slog.New(slog.DiscardHandler)}
	for _, c := range []struct {
		name, body string
		status     int
	}{
		{"two of three", `{"sku":"` + product + `","quantity":2}`, http.StatusOK},
		{"two of one", `{"sku":"` + product + `","quantity":2}`, http.StatusConflict},
		{"the last", oneUnit, http.StatusOK},
		{"sold out", oneUnit, http.StatusConflict},
		{"an unknown product", `{"sku":"sku-43","quantity":1}`, http.StatusNotFound},
		{"no JSON", `sku-42`, http.StatusBadRequest},
		{"nothing", ``, http.StatusBadRequest},
		{"a field that is not known", `{"sku":"sku-42","quantity":1,"price":0}`, http.StatusBadRequest},
		{"no product", `{"quantity":1}`, http.StatusBadRequest},
		{"no quantity", `{"sku":"sku-42"}`, http.StatusBadRequest},
		{"a negative quantity", `{"sku":"sku-42","quantity":-1}`, http.StatusBadRequest},
		{"a broken quantity", `{"sku":"sku-42","quantity":1.5}`, http.StatusBadRequest},
		{"too much", `{"sku":"sku-42","quantity":101}`, http.StatusBadRequest},
		{"too long", `{"sku":"` + strings.Repeat("x", maxOrder) + `","quantity":1}`, http.StatusBadRequest},
	} {
		assert.Equal(t, c.status, placeOrder(service, c.body).Code, c.name)
	}
	s.requireSold(3, 0)

	w := httptest.NewRecorder()
	service.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/buy", nil))
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

// answering is a seller that always fails, or never.
type answering struct{ err error }

func (a answering) sell(context.Context, string, decision) error { return a.err }

func TestABuyerIsToldToComeAgainOnlyIfNothingWasSold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err        error
		status     int
		retryAfter string
	}{
		{&fencing.QueueError{}, http.StatusServiceUnavailable, "1"},
		{fencing.ErrWaitLimit, http.StatusServiceUnavailable, "1"},
		{redlock.ErrNoQuorum, http.StatusServiceUnavailable, "1"},
		{redlock.ErrLeaseExpired, http.StatusServiceUnavailable, "1"},
		{fencing.ErrTxConflict, http.StatusServiceUnavailable, "1"},
		{errors.Join(&fencing.StaleError{}, redlock.ErrLeaseExpired), http.StatusServiceUnavailable, "0"},
		{errors.Join(fmt.Errorf("%w: lost", errUnsure), redlock.ErrLeaseExpired), http.StatusInternalServerError, ""},
		{errors.New("anything else"), http.StatusInternalServerError, ""},
	} {
		var log bytes.Buffer
		s := &service{seller: answering{c.err}, logger: slog.New(slog.NewTextHandler(&log, nil))}
		w := placeOrder(s, oneUnit)
		assert.Equal(t, c.status, w.Code, c.err)
		assert.Equal(t, c.retryAfter, w.Header().Get("Retry-After"), c.err)
		assert.Equal(t, c.status == http.StatusInternalServerError, log.Len() > 0, "the operator is told of what is wrong")
		assert.NotContains(t, w.Body.String(), "lost", "and the buyer is not")
	}
}

func TestABuyerWhoHasGoneIsNoErrorOfTheService(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := &service{seller: answering{context.Canceled}, logger: slog.New(slog.NewTextHandler(&log, nil))}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(gone, http.MethodPost, "/buy", strings.NewReader(oneUnit))
	s.handler().ServeHTTP(httptest.NewRecorder(), r)
	assert.Empty(t, log.String())
}

func TestABuyerWhoFindsTheQueueFullIsToldToComeAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, 10)
	inside, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	service := &service{
		seller: s.seller(guarded, 1), logger: slog.New(slog.DiscardHandler),
		check: func(int) func(error) {
			once.Do(func() { close(inside); <-goOn })
			return nil
		},
	}
	answers := make(chan int)
	buy := func() { answers <- placeOrder(service, oneUnit).Code }
	go buy()
	<-inside
	// Of two more one may wait in line.
	go buy()
	go buy()
	assert.Equal(t, http.StatusServiceUnavailable, <-answers)
	close(goOn)
	assert.Equal(t, http.StatusOK, <-answers)
	assert.Equal(t, http.StatusOK, <-answers)
	s.requireSold(2, 8)
}
