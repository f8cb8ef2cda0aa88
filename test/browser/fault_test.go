package browser

import (
	"testing"

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
	p.until(`document.querySelector("#health-age").textContent.startsWith("last quorum 2 s")`)
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
