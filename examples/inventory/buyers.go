package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A crowd are buyers who place orders for one unit each, as fast as they are served, until all orders
// are answered.
type crowd struct {
	replicas []string // where they are, as host:port
	buyers   int
	orders   int
	sold     atomic.Int64 // so far
	placed   atomic.Int64
}

// An answer is what became of an order.
type answer struct {
	begun, ended time.Time
	status       int // of HTTP; 0: there was none
	comeAgain    int // how often it was turned away before
}

// buy places all orders, and returns their answers when the last has come, or ctx ends.
func (c *crowd) buy(ctx context.Context) []answer {
	transport := &http.Transport{MaxIdleConnsPerHost: c.buyers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}

	// The load balancer: each replica has as many slots as the others, and the slot that has been free
	// for longest is next. So they take turns, and one that hangs gets no more than its slots.
	slots := make(chan string, c.buyers)
	for i := range c.buyers {
		slots <- c.replicas[i%len(c.replicas)]
	}
	answers := make([][]answer, c.buyers)
	var all sync.WaitGroup
	for i := range c.buyers {
		all.Go(func() {
			for ctx.Err() == nil && c.placed.Add(1) <= int64(c.orders) {
				answers[i] = append(answers[i], c.place(ctx, client, slots))
			}
		})
	}
	all.Wait()
	var together []answer
	for _, some := range answers {
		together = append(together, some...)
	}
	return together
}

// place places one order, again and again while it is turned away.
func (c *crowd) place(ctx context.Context, client *http.Client, slots chan string) (a answer) {
	a.begun = time.Now()
	defer func() { a.ended = time.Now() }()
	for {
		replica := <-slots
		status, wait, err := post(ctx, client, "http://"+replica+"/buy", order{SKU: product, Quantity: 1})
		slots <- replica
		switch {
		case err != nil:
			return a
		case status == http.StatusServiceUnavailable && sleep(ctx, wait):
			a.comeAgain++
			continue
		case status == http.StatusOK:
			c.sold.Add(1)
		}
		a.status = status
		return a
	}
}

// post sends an order, and tells how long to wait where the answer says so.
func post(ctx context.Context, client *http.Client, url string, o order) (status int, wait time.Duration, err error) {
	body, err := json.Marshal(o)
	if err != nil {
		return 0, 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, 0, fmt.Errorf("place an order: %w", err)
	}
	// Read to its end, so that the connection can be used again.
	_, err = io.Copy(io.Discard, response.Body)
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	if seconds, e := strconv.Atoi(response.Header.Get("Retry-After")); e == nil {
		wait = time.Duration(seconds) * time.Second
	}
	return response.StatusCode, wait, err
}

// sleep reports whether ctx lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
