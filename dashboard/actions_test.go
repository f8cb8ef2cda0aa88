package dashboard_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

// ask asks for an action, in a request that change may change.
func ask(h http.Handler, what, name string, change func(*http.Request)) (status int, answer string) {
	body, _ := json.Marshal(map[string]string{"id": base64.RawURLEncoding.EncodeToString([]byte(name))})
	r := httptest.NewRequest(http.MethodPost, "/actions/"+what, bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A log is what was logged, by several goroutines.
func logInto(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

func TestOnlyWhoKnowsTheTokenAndComesFromThePageMayAct(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		lease := hold(t, newLocker(t, f, "b"), "sku:42")
		header := func(key, value string) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set(key, value) }
		}
		var log bytes.Buffer
		h := newBoard(t, locker, dashboard.WithActions(token), dashboard.WithLogger(logInto(&log)))
		for _, c := range []struct {
			why    string
			change func(*http.Request)
			status int
		}{
			{"no token", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
			{"a wrong token", header("Authorization", "Bearer 0123456789abcdeF"), 401},
			{"a part of the token", header("Authorization", "Bearer 0123456789abcde"), 401},
			{"an empty token", header("Authorization", "Bearer "), 401},
			{"another scheme", header("Authorization", "Basic "+token), 401},
			{"the bare token", header("Authorization", token), 401},
			{"another site", header("Sec-Fetch-Site", "cross-site"), 403},
			{"another host of the site", header("Sec-Fetch-Site", "same-site"), 403},
			{"another origin", header("Origin", "https://evil.example"), 403},
			{"an opaque origin", header("Origin", "null"), 403},
			{"GET", func(r *http.Request) { r.Method = http.MethodGet }, 405},
			{"PUT", func(r *http.Request) { r.Method = http.MethodPut }, 405},
		} {
			status, answer := ask(h, "break", "sku:42", c.change)
			require.Equal(t, c.status, status, "%s: %s", c.why, answer)
			require.NotContains(t, answer, token)
		}
		synctest.Wait()
		require.NoError(t, lease.Extend(t.Context()), "nothing happened")
		require.Equal(t, 10, strings.Count(log.String(), "outcome=refused"), "each POST that was refused is logged")
		require.NotContains(t, log.String(), token)
		require.NotContains(t, log.String(), "0123456789abcde")
	})
}

func TestWithoutActionsNothingCanBeDone(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		lease := hold(t, locker, "sku:42")
		h := newBoard(t, locker)
		for _, authorization := range []string{"", "Bearer ", "Bearer " + token} {
			status, answer := ask(h, "break", "sku:42", func(r *http.Request) { r.Header.Set("Authorization", authorization) })
			require.Equal(t, 403, status)
			require.Contains(t, answer, "read-only")
		}
		require.NoError(t, lease.Extend(t.Context()))
		p := look(t, h)
		settle()
		require.Equal(t, false, p.fleet()["actions"])
	})
}

func TestARequestThatCannotBeReadIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		h := newBoard(t, newLocker(t, f, "a"), dashboard.WithActions(token))
		for _, body := range []string{"", "{", "[]", `{"id":""}`, `{"id":"***"}`, `{"id":7}`, `{"id":"` + strings.Repeat("A", 5000) + `"}`} {
			r := httptest.NewRequest(http.MethodPost, "/actions/break", strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, 400, w.Code, body)
		}
		status, answer := ask(h, "explode", "sku:42", nil)
		require.Equal(t, 404, status, answer)
	})
}

func TestABrokenNameIsFreeAndTheLogSaysWhoDidIt(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		for name := range hostile {
			lease := hold(t, newLocker(t, f, "b"), name)
			var log bytes.Buffer
			h := newBoard(t, newLocker(t, f, "a"), dashboard.WithActions(token), dashboard.WithLogger(logInto(&log)),
				dashboard.WithActor(func(r *http.Request) string { return r.Header.Get("X-User") }))
			status, answer := ask(h, "break", name, func(r *http.Request) {
				r.RemoteAddr = "192.0.2.7:4711"
				r.Header.Set("X-User", "ann\n")
				r.Header.Set("Origin", "http://example.com") // httptest's own
				r.Header.Set("Sec-Fetch-Site", "same-origin")
			})
			require.Equal(t, 200, status, answer)
			require.Contains(t, answer, "held by b/")
			require.Error(t, lease.Extend(t.Context()))
			for _, part := range []string{"action=break", "192.0.2.7:4711", "outcome=done", `actor=ann\x0a`} {
				require.Contains(t, log.String(), part)
			}
			require.Equal(t, 1, strings.Count(log.String(), "\n"), "one line: %s", log.String())
		}
	})
}

func TestAJobIsPausedResumedAndTriggered(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		sched, err := scheduler.New(newLocker(t, f, "b"), scheduler.WithLogger(quiet))
		require.NoError(t, err)
		runs := 0
		require.NoError(t, sched.Add("report", "@every 1h", func(context.Context, scheduler.Run) error {
			runs++
			return nil
		}))
		background(t, sched.Run)
		h := newBoard(t, locker, dashboard.WithActions(token))
		p := look(t, h)
		settle()
		status, answer := ask(h, "pause", "report", nil)
		require.Equal(t, 200, status, answer)
		time.Sleep(interval / 2)
		synctest.Wait()
		require.Equal(t, true, p.row("jobs", "report")["paused"], "it is looked at without waiting for the interval")
		require.Contains(t, p.row("jobs", "report")["pausedBy"], "dashboard of a")

		before := runs
		status, _ = ask(h, "trigger", "report", nil)
		require.Equal(t, 200, status)
		settle()
		require.Equal(t, before+1, runs)
		status, _ = ask(h, "resume", "report", nil)
		require.Equal(t, 200, status)
		settle()
		require.Nil(t, p.row("jobs", "report")["paused"])

		status, answer = ask(h, "pause", "no such job", nil)
		require.Equal(t, 404, status, answer)
	})
}

func TestOnlyALeaderOfThisProcessCanBeMadeToResign(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		ours, _ := campaign(t, locker, "billing")
		bystander, err := leader.New(locker, "billing", leader.WithLogger(quiet))
		require.NoError(t, err)
		theirs, _ := campaign(t, newLocker(t, f, "b"), "search")
		h := newBoard(t, locker, dashboard.WithActions(token), dashboard.WithElectors(bystander, ours))
		p := look(t, h)
		settle()
		require.Equal(t, true, p.row("elections", "billing")["ours"])
		require.Nil(t, p.row("elections", "search")["ours"])
		status, answer := ask(h, "resign", "search", nil)
		require.Equal(t, 409, status)
		require.Contains(t, answer, "ask the replica that does")
		require.True(t, theirs.IsLeader())
		status, answer = ask(h, "resign", "billing", nil)
		require.Equal(t, 200, status, answer)
		require.False(t, ours.IsLeader())
	})
}

func TestAnActionWithoutAQuorumSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		h := newBoard(t, newLocker(t, f, "a"), dashboard.WithActions(token))
		f.Stop(0)
		f.Stop(1)
		status, answer := ask(h, "break", "sku:42", nil)
		require.Equal(t, 503, status, answer)
		require.Contains(t, answer, "quorum")
	})
}
