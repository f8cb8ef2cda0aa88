package browser

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/dashboard"
)

func TestThePageShowsNodesLeadersJobsAndNames(t *testing.T) {
	s := town(t, dashboard.WithActions(actionsToken))
	p := s.open(1280, 900)
	p.reads("#health-line", "All 3 nodes answer.")
	p.until(`document.querySelectorAll("table.nodes .pill.ok").length === 3`)
	p.reads("table.elections", "web-1")
	p.reads("table.elections", "web-2")
	p.reads("table.elections", "10.0.1.7:8443")
	p.reads("table.names", "sku:42")
	p.reads("table.contention", "ledger:eu")
	p.reads("table.jobs", "nightly-report")
	p.until(`document.querySelectorAll("table.jobs .grid .cell.ran").length >= 12`)
	p.until(`document.querySelectorAll("table.jobs .grid .cell.failed").length >= 2`)
	p.until(`document.querySelectorAll("table.jobs .grid .cell.missed").length >= 2`)
	p.reads("table.jobs .notes", "not run: an earlier run was still going on")
	require.Empty(t, p.found())
	p.shot("desktop")
}
