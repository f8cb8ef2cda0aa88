package dashboard_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// newService is a Locker on a fleet of its own.
func newService(opts ...redlock.Option) (locker *redlock.Locker, stop func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	locker, err = redlock.New(fleet.Clients(), opts...)
	if err != nil {
		log.Fatal(err)
	}
	return locker, func() {
		_ = locker.Close()
		_ = fleet.Close()
	}
}

// On a listener without authentication, sites whose name was made to resolve to this address stay outside.
func ExampleHandler() {
	locker, stop := newService()
	defer stop()
	board, err := dashboard.New(locker, dashboard.WithHosts("localhost", "127.0.0.1"))
	if err != nil {
		log.Fatal(err)
	}
	defer board.Close() // before the Locker

	for _, host := range []string{"localhost:8090", "evil.example"} {
		request := httptest.NewRequest(http.MethodGet, "http://"+host+"/", nil)
		answer := httptest.NewRecorder()
		board.ServeHTTP(answer, request)
		fmt.Println(host, answer.Code)
	}
	// Output:
	// localhost:8090 200
	// evil.example 403
}

// With actions, the page has buttons for those who know the token. The log tells who asked for what, and what came of it.
func ExampleWithActions() {
	locker, stop := newService()
	defer stop()
	const token = "8d5c1c0f5e7b4f0e9d1f" // in production made at random, and kept as a secret
	board, err := dashboard.New(locker,
		dashboard.WithActions(token),
		dashboard.WithActor(func(r *http.Request) string { return r.Header.Get("X-User") }), // of your authentication
		dashboard.WithLogger(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: sameEachTime}))))
	if err != nil {
		log.Fatal(err)
	}
	defer board.Close()

	request := httptest.NewRequest(http.MethodPost, "/actions/pause", strings.NewReader(`{}`))
	request.Header.Set("Authorization", "Bearer a-guess")
	request.Header.Set("X-User", "ann")
	answer := httptest.NewRecorder()
	board.ServeHTTP(answer, request)
	fmt.Println(answer.Code)
	// Output:
	// level=WARN msg="dashboard: action" action=pause name="" actor=ann error="the token is missing or wrong" outcome=refused
	// 401
}

// sameEachTime leaves out what differs from run to run.
func sameEachTime(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, "remote", "took":
		return slog.Attr{}
	}
	return a
}

// The names that a process waits for: those that were asked for the longest come first.
func ExampleRecorder() {
	recorder := dashboard.NewRecorder()
	locker, stop := newService(redlock.WithObserver(recorder.Observe))
	defer stop()
	ctx := context.Background()

	lease, err := locker.Acquire(ctx, "sku:42")
	if err != nil {
		log.Fatal(err)
	}
	_, err = locker.TryAcquire(ctx, "sku:42")
	fmt.Println("another try is refused:", err != nil)
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}

	for _, c := range recorder.Top(10) {
		fmt.Println(c.Name, "got", c.Acquired, "refused", c.Refused, "over", c.Ended)
	}
	// Output:
	// another try is refused: true
	// sku:42 got 1 refused 1 over 1
}

// What a Recorder knows of a name, as means.
func ExampleContention() {
	recorder := dashboard.NewRecorder()
	for _, ms := range []int{10, 30} { // as a Locker tells it
		recorder.Observe(redlock.Event{Kind: redlock.Acquired, Name: "sku:42", Wait: time.Duration(ms) * time.Millisecond})
		recorder.Observe(redlock.Event{Kind: redlock.Ended, Name: "sku:42", Held: time.Duration(2*ms) * time.Millisecond})
	}
	c := recorder.Top(1)[0]
	fmt.Println(c.Name, "waited for", c.MeanWait(), "held for", c.MeanHeld(), "at most", c.MaxHeld)
	// Output: sku:42 waited for 20ms held for 40ms at most 60ms
}
