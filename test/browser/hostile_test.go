package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

// attacks run a script, or break out of where they stand, on a page that takes them for markup.
var attacks = []string{
	`<script>window.stung=1</script>`,
	`"><img src=x onerror="window.stung=1">`,
	`'><svg onload=window.stung=1>`,
	`</td></tr></table><iframe srcdoc="<script>parent.stung=1</script>">`,
	`javascript:window.stung=1`,
	`</script><script>window.stung=1</script>`,
	"<a href=\"javascript:window.stung=1\" autofocus onfocus=\"window.stung=1\">x</a>",
	`<style>body:before{content:"stung"}</style>`,
	"evil\u202egpj.exe",
	"\xff\xfe\x00\x1b[31m\r\nevent: fleet\ndata: 1\n\n",
	"__proto__", "constructor", "toString",
	"z̸̢̛̛̘̰̱̈́̈́͋a̷͎͛l̵͉̈́g̸̛̜o" + strings.Repeat("\u0334", 100),
	strings.Repeat("W", 400),
}

func TestNoScriptRunsFromNames(t *testing.T) {
	var lockers []*redlock.Locker
	s := newStage(t, dashboard.WithActions(actionsToken))
	for i, attack := range attacks {
		locker := s.newLocker(strings.ToValidUTF8(attack, "?"))
		lockers = append(lockers, locker)
		s.hold(locker, attack)
		s.recorder.Observe(redlock.Event{Kind: redlock.Refused, Name: attack, Wait: time.Duration(i) * time.Second})
		if strings.ToValidUTF8(attack, "") == attack {
			s.campaign(locker, "vote"+attack, leader.WithAddress(strings.ToValidUTF8(attack[:min(len(attack), 200)], "")), leader.WithLabels(map[string]string{attack: attack}))
		}
	}
	s.schedule(lockers[1], func(sched *scheduler.Scheduler) {
		for _, attack := range attacks {
			require.NoError(t, sched.Add(attack, "@every 1s", func(context.Context, scheduler.Run) error { return errors.New(attack) }))
		}
	})
	p := s.open(1280, 900)
	for _, attack := range []string{attacks[0], attacks[1], `evil\u202egpj.exe`, `\xff\xfe\x00\x1b[31m\x0d\x0aevent`, "__proto__"} {
		for _, table := range []string{"names", "jobs", "contention"} {
			p.reads("table."+table+" .name", attack)
		}
	}
	p.reads("table.elections .name", "vote"+attacks[0])
	p.until(`document.querySelectorAll("table.jobs .cell.failed").length > 20`)
	// Also where texts go when somebody uses the page.
	p.until(`(document.querySelectorAll(".toggle, summary").forEach((e) => e.click()), true)`)
	p.reads("table.inner td", attacks[1])
	p.until(`[...document.querySelectorAll("table.names .action")].filter((b) => (b.click(), document.querySelector("dialog").close(), true)).length > 10`)

	require.Nil(t, eval[any](p, `window.stung ?? null`))
	require.Empty(t, p.found(), "exceptions, errors and dialogs")
	require.Zero(t, eval[int](p, `document.querySelectorAll("main img, main script, main iframe, main style, main a").length`))
	require.Equal(t, 1, eval[int](p, `document.querySelectorAll("script").length`), "its own")
	p.shot("hostile")
	require.Empty(t, eval[[]string](p, outside), "no name makes the page wider")

	// And the lock on the door behind all that: the browser itself refuses.
	require.Equal(t, "refused", eval[string](p, `(() => { try { document.createElement("p").innerHTML = "<b>x</b>"; return "made"; } catch { return "refused"; } })()`))
	eval[any](p, `(() => {
		const script = document.createElement("script");
		try { script.text = "window.stung = 1"; } catch { script.append("window.stung = 1"); }
		document.body.append(script);
		return null;
	})()`)
	require.Nil(t, eval[any](p, `window.stung ?? null`))
}

// A ledger that no Scheduler has written: with words that every object of JavaScript knows, and moments
// that it has no date for.
func TestALedgerThatIsNoLedgerHidesNoOtherJob(t *testing.T) {
	s := newStage(t)
	locker := s.newLocker("web-2")
	s.schedule(locker, func(sched *scheduler.Scheduler) {
		require.NoError(t, sched.Add("sweep-sessions", "@every 1s", func(context.Context, scheduler.Run) error { return nil }))
	})
	for i, word := range []string{"constructor", "__proto__", "toString"} {
		lease := s.hold(s.newLocker("web-3"), scheduler.JobPrefix+word)
		require.NoError(t, lease.Save(t.Context(), fmt.Appendf(nil, `{"v":2,"spec":"x","ledger":[
			{"k":%[1]q,"t":9223372036854775807,"n":9223372036854775807,"o":%[1]q,"r":%[1]q,"by":%[1]q,"b":%[2]d,"e":1,"a":7,"f":9223372036854775807},
			{"t":-9223372036854775808,"o":"missed","r":%[1]q}]}`, word, []int64{1, -8_640_000_000_000_001, 8_640_000_000_000_001}[i])))
	}
	p := s.open(1280, 900)
	p.reads("table.jobs .name", "__proto__")
	p.until(`document.querySelectorAll("table.jobs .cell.missed").length >= 6`)
	p.until(`(document.querySelectorAll(".toggle").forEach((e) => e.click()), true)`)
	p.reads("table.inner .outcome", "constructor")
	p.reads("table.jobs .name", "sweep-sessions")
	p.until(`document.querySelectorAll("table.jobs .cell.ran").length >= 1`)
	require.NotContains(t, eval[string](p, `document.querySelector("#jobs").textContent`), "native code")
	require.Empty(t, p.found())
}
