package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// An order is what a buyer posts to /buy. The answers:
//
//	200 OK                    sold
//	400 Bad Request           it cannot be read, or is for no units
//	404 Not Found             there is no such product
//	409 Conflict              sold out
//	503 Service Unavailable   nothing was sold: come again after Retry-After
//	500                       it may have been sold or not
type order struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

// maxOrder bounds the body of a request, and maxQuantity what one buyer gets.
const (
	maxOrder    = 4 << 10
	maxQuantity = 100
)

// A service is the shop's HTTP API, as each replica serves it.
type service struct {
	seller seller
	logger *slog.Logger
	// check, where there is one, is asked in the middle of each sale, between the read and the write; it
	// may give a function that is told how the sale ended.
	check func(left int) (ended func(error))
	stale atomic.Int64 // sales that the gate has refused
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /buy", s.buy)
	return mux
}

func (s *service) buy(w http.ResponseWriter, r *http.Request) {
	o, err := readOrder(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	err = s.sell(r.Context(), o)
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, "{\"sold\":%d}\n", o.Quantity) // if it fails, the buyer has gone
	case errors.Is(err, errSoldOut):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, errUnknown):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, errUnsure):
		s.fail(w, o, err)
	case errors.Is(err, fencing.ErrStaleToken):
		// This replica was paused, and others have sold in the meantime. Nothing was written.
		s.stale.Add(1)
		comeAgain(w, 0, "others were faster")
	case isOneOf(err, fencing.ErrQueueFull, fencing.ErrWaitLimit, fencing.ErrHoldLimit, fencing.ErrTxConflict,
		redlock.ErrNoQuorum, redlock.ErrQuarantined, redlock.ErrNoValidity, redlock.ErrLeaseExpired, redlock.ErrLeaseLost):
		comeAgain(w, 1, "too busy")
	case r.Context().Err() != nil: // the buyer has gone
	default:
		s.fail(w, o, err)
	}
}

func isOneOf(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// fail tells the operator what went wrong, and the buyer no more than that it did.
func (s *service) fail(w http.ResponseWriter, o order, err error) {
	s.logger.Error("inventory: the sale failed", "sku", o.SKU, "error", err)
	http.Error(w, "something went wrong", http.StatusInternalServerError)
}

// comeAgain says that nothing was sold, and after how many seconds to try again.
func comeAgain(w http.ResponseWriter, seconds int, why string) {
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	http.Error(w, why, http.StatusServiceUnavailable)
}

func readOrder(w http.ResponseWriter, r *http.Request) (o order, err error) {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	body.DisallowUnknownFields()
	switch err := body.Decode(&o); {
	case err != nil:
		return order{}, fmt.Errorf("the order cannot be read: %w", err)
	case o.SKU == "":
		return order{}, errors.New("the order names no product: give it as sku")
	case o.Quantity < 1 || o.Quantity > maxQuantity:
		return order{}, fmt.Errorf("quantity %d is not between 1 and %d", o.Quantity, maxQuantity)
	}
	return o, nil
}

// sell decides by what is left, and leaves to the seller that this is so still when it is written.
func (s *service) sell(ctx context.Context, o order) error {
	ended := func(error) {}
	err := s.seller.sell(ctx, o.SKU, func(left int) (units int, err error) {
		if left < o.Quantity {
			return 0, errSoldOut
		}
		if s.check != nil {
			if f := s.check(left); f != nil {
				ended = f
			}
		}
		return o.Quantity, nil
	})
	ended(err)
	return err
}
