package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// A service mounts the dashboard beside what else it serves, behind its own authentication.
func Example() {
	fleet, err := redlocktest.New(3) // in production: three Redis servers
	if err != nil {
		panic(err)
	}
	defer fleet.Close()
	recorder := dashboard.NewRecorder()
	locker, err := redlock.New(fleet.Clients(), redlock.WithObserver(recorder.Observe))
	if err != nil {
		panic(err)
	}
	defer locker.Close()
	elector, err := leader.New(locker, "billing")
	if err != nil {
		panic(err)
	}

	board, err := dashboard.New(locker, dashboard.WithElectors(elector), dashboard.WithContention(recorder))
	if err != nil {
		panic(err)
	}
	defer board.Close() // before the Locker
	mux := http.NewServeMux()
	mux.Handle("/quorate/", onlyOperators(http.StripPrefix("/quorate", board)))
	server := httptest.NewServer(mux) // in production: an http.Server, with RegisterOnShutdown for board.Close
	defer server.Close()

	for _, user := range []string{"anybody", "operator"} {
		request, _ := http.NewRequest(http.MethodGet, server.URL+"/quorate/", nil)
		request.SetBasicAuth(user, "")
		response, err := server.Client().Do(request)
		if err != nil {
			panic(err)
		}
		response.Body.Close()
		fmt.Println(user, response.Status)
	}
	// Output:
	// anybody 403 Forbidden
	// operator 200 OK
}

// onlyOperators stands for the authentication of the service.
func onlyOperators(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user != "operator" {
			http.Error(w, "for operators", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
