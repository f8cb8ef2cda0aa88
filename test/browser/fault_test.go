package browser

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

func TestAChangeOfLeaderShowsOnTheOpenPage(t *testing.T) {
	s := newStage(t)
	_, stop := s.campaign(s.newLocker("web-2"), "billing")
	p := s.open(1280, 900)
	p.reads("table.elections .strong", "web-2")
	loaded := eval[float64](p, `window.loaded = performance.timeOrigin`)
	s.campaign(s.newLocker("web-3"), "billing")
	stop()
	p.reads("table.elections .strong", "web-3")
	p.reads("table.elections summary", "2 terms seen")
	p.until(`document.querySelectorAll("svg.timeline rect").length === 2`)
	require.InDelta(t, loaded, eval[float64](p, `window.loaded`), 0, "it is the same page")
	require.Contains(t, eval[string](p, `document.querySelector("svg.timeline").getAttribute("aria-label")`), "2 terms. web-3 leads.")
	require.Empty(t, p.found())
}

func TestThePageTellsThatTheQuorumIsLostAndThatItIsBack(t *testing.T) {
	s := town(t)
	p := s.open(1280, 900)
	p.reads("#health-line", "All 3 nodes answer.")
	p.reads("table.names", "sku:42")
	p.until(`document.querySelectorAll("table.jobs .cell.ran").length >= 3`)

	s.fleet.Stop(0)
	p.reads("#health-line", "The fleet works with 2 of 3 nodes. If one more fails, nothing can be acquired.")
	p.until(`document.querySelectorAll("table.nodes .pill.bad").length === 1`)
	require.Empty(t, eval[string](p, `document.querySelector("#names-age").textContent`))

	s.fleet.Stop(1)
	p.reads("#health-line", "No quorum: 1 of 3 nodes answers, 2 have to.")
	p.reads("#names-age", "as of")
	p.reads("#elections-age", "as of")
	p.reads("table.names", "sku:42") // as it was last known
	p.until(`document.querySelector("#jobs").classList.contains("old") && document.title.startsWith("⚠")`)
	p.until(`/^last quorum ([2-9]|[1-9]\d+) (s|min)/.test(document.querySelector("#health-age").textContent)`)
	p.reads("table.jobs td[data-label=Next]", "due") // its next ticks, as far as they were told, have passed
	require.NotContains(t, eval[string](p, `document.querySelector("#jobs").textContent`), "in 0")
	require.NotContains(t, eval[string](p, `document.querySelector("table.elections tbody").innerText`), "elsewhere", "it led in this process")
	p.shot("no-quorum")

	s.fleet.Restart(0)
	s.fleet.Restart(1)
	p.reads("#health-line", "No quorum yet: 3 of 3 nodes answer, but only 1 counts.")
	p.reads("#health-line", "All 3 nodes answer.")
	p.until(`document.querySelector("#names-age").textContent === "" && document.title === "quorate"`)
	p.reads("table.elections .strong", "web-1")
	require.Empty(t, p.found())
}

func TestThePageTellsThatItsServerIsGoneAndConnectsAgain(t *testing.T) {
	s := newStage(t)
	s.hold(s.newLocker("web-2"), "sku:42")
	p := s.open(1280, 900)
	p.reads("table.names", "sku:42")
	s.down.Store(true)
	s.server.CloseClientConnections()
	p.reads("#health-line", "No connection to the server of this page.")
	p.reads("#nodes-age", "as of")
	s.hold(s.newLocker("web-3"), "sku:43")
	s.down.Store(false)
	p.reads("#health-line", "All 3 nodes answer.")
	p.reads("table.names", "sku:43")
	p.until(`document.querySelector("#nodes-age").textContent === ""`)
}

// before puts a server before the stage's, and gives the URL of the page there. The server is told of each request, and
// where it is to go.
func (s *stage) before(direct func(r *http.Request) (server string)) string {
	s.t.Helper()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", strings.TrimPrefix(direct(r.In), "http://")
		},
		FlushInterval: -1,
	}
	server := httptest.NewServer(proxy)
	s.t.Cleanup(server.Close)
	return server.URL + "/ops/quorate/"
}

func TestThePageTellsThatALoadBalancerMixesReplicas(t *testing.T) {
	s := newStage(t)
	s.hold(s.newLocker("web-2"), "sku:42")
	first := s.server.URL
	s.locker = s.newLocker("web-9")
	s.serve()
	second := s.server.URL
	var mixed atomic.Bool
	mixed.Store(true)
	front := s.before(func(r *http.Request) string {
		if mixed.Load() && strings.HasSuffix(r.URL.Path, "/names") {
			return second
		}
		return first
	})
	p := blank(t, 1280, 900)
	p.do(chromedp.Navigate(front))
	p.reads("#names-note", "These names are what web-9 knows, and the rest of the page is from web-1")
	mixed.Store(false)
	p.reads("table.names", "sku:42")
	p.until(`document.querySelector("#names-note").hidden`)
	p.do(chromedp.Navigate("about:blank")) // ends the stream, for which the server waits
}

func TestAPageInTheBackgroundAsksForNothing(t *testing.T) {
	s := newStage(t)
	var open atomic.Int64
	s.watch = func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			open.Add(1)
			go func() { <-r.Context().Done(); open.Add(-1) }()
		}
	}
	p := blank(t, 1280, 900)
	_, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `window.away = true; Object.defineProperty(document, "hidden", { get: () => window.away });`,
	})
	require.NoError(t, err)
	p.do(chromedp.Navigate(s.url))
	p.reads("#zone", "U") // all of its script has run
	eval[bool](p, `new Promise((done) => setTimeout(() => done(true), 500))`)
	require.Zero(t, open.Load())
	p.until(`(window.away = false, document.dispatchEvent(new Event("visibilitychange")))`)
	p.reads("#health-line", "All 3 nodes answer.")
	require.EqualValues(t, 1, open.Load())
	p.until(`(window.away = true, document.dispatchEvent(new Event("visibilitychange")))`)
	require.Eventually(t, func() bool { return open.Load() == 0 }, soon, 20*time.Millisecond)
}
