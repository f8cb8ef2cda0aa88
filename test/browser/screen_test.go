package browser

import (
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/dashboard"
)

// outside gives what sticks out of the screen at the sides.
const outside = `[...document.querySelectorAll("main *, header *")].filter((e) => {
	const r = e.getBoundingClientRect();
	return r.width > 1 && !e.closest(".unseen, thead, svg, .terms") && !e.parentElement.closest(".name") && (r.right > innerWidth + 1 || r.left < -1);
}).map((e) => e.outerHTML.slice(0, 120)).concat(document.documentElement.scrollWidth > innerWidth ? ["the page"] : [])`

// broken gives what a phone's screen breaks into two lines though it is meant for one, and leaders whose name
// is cut off in the timeline.
const broken = `[...document.querySelectorAll("table.names td.num, table.jobs td[data-label=Next]")].filter((e) => e.getBoundingClientRect().height > 30)
	.concat([...document.querySelectorAll("table.inner tbody tr")].filter((e) => e.cells[0].getBoundingClientRect().top !== e.cells[1].getBoundingClientRect().top))
	.map((e) => e.textContent)
	.concat([...document.querySelectorAll("svg.timeline text")].filter((e) => e.getBoundingClientRect().right > e.previousElementSibling.getBoundingClientRect().right).map((e) => e.textContent))`

func TestAPhoneShowsAllWithoutScrollingSideways(t *testing.T) {
	s := town(t, dashboard.WithActions(actionsToken))
	s.hold(s.newLocker("a-host-with-a-very-long-name-indeed.region-1.example.internal"), "a/name/that/goes/on/and/on/without/any/place/to/break/it/"+attacks[len(attacks)-1])
	p := s.open(360, 740)
	p.reads("table.names", "sku:42")
	p.until(`document.querySelectorAll("table.jobs .cell.ran").length >= 6`)
	p.until(`(document.querySelectorAll(".toggle, summary").forEach((e) => e.click()), true)`)
	p.until(`document.querySelectorAll("table.inner").length > 0`)
	p.shot("phone-details")
	require.Empty(t, eval[[]string](p, outside))
	require.Empty(t, eval[[]string](p, broken))
	p.until(`(document.querySelectorAll("[aria-expanded=true], details[open] > summary").forEach((e) => e.click()), true)`)
	p.shot("phone")
	small := eval[[]string](p, `[...document.querySelectorAll("main button")].filter((e) => {
		const r = e.getBoundingClientRect();
		return r.width > 1 && (r.height < 24 || r.width < 24) && !e.closest("thead");
	}).map((e) => e.textContent)`)
	require.Empty(t, small, "a finger can hit each button")
}

// contrasts gives each text of the page that is hard to tell from what is behind it: WCAG's formula, and its
// 4.5 for text of this size.
const contrasts = `(() => {
	const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgba = (color) => {
		canvas.clearRect(0, 0, 1, 1);
		canvas.fillStyle = color;
		canvas.fillRect(0, 0, 1, 1);
		const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
		return { r, g, b, a: a / 255 };
	};
	const over = (top, under) => ({ r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a), b: top.b * top.a + under.b * (1 - top.a), a: 1 });
	const light = ({ r, g, b }) => [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => {
		const layers = [];
		for (; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
		return layers.reverse().reduce((under, top) => over(top, under), { r: 255, g: 255, b: 255, a: 1 });
	};
	const bad = [];
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	let seen = 0;
	for (let n = walk.nextNode(); n; n = walk.nextNode()) {
		const e = n.parentElement;
		if (!n.data.trim() || e.closest(".unseen, [hidden], option, noscript, dialog, svg, .skip, #toast") || !e.getClientRects().length) continue;
		seen++;
		const back = behind(e), front = over(rgba(getComputedStyle(e).color), back);
		const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) bad.push(ratio.toFixed(2) + " " + n.data.trim().slice(0, 40));
	}
	for (const text of document.querySelectorAll("svg.timeline text")) {
		const [a, b] = [light(rgba(getComputedStyle(text).fill)), light(rgba(getComputedStyle(text.previousElementSibling).fill))].sort((x, y) => y - x);
		if ((a + 0.05) / (b + 0.05) < 4.5) bad.push("timeline " + text.textContent);
		seen++;
	}
	return { seen, bad, back: getComputedStyle(document.body).backgroundColor };
})()`

func TestLightAndDarkAreLegible(t *testing.T) {
	type contrast struct {
		Seen int      `json:"seen"`
		Bad  []string `json:"bad"`
		Back string   `json:"back"`
	}
	s := town(t, dashboard.WithActions(actionsToken))
	s.fleet.Stop(2)
	p := s.open(1280, 900)
	p.reads("#health-line", "The fleet works with 2 of 3 nodes.")
	p.until(`document.querySelectorAll("table.jobs .cell.failed").length >= 2 && document.querySelectorAll("table.jobs .cell.missed").length >= 1`)
	p.until(`document.querySelectorAll("svg.timeline text").length >= 1`)
	bright := eval[contrast](p, contrasts)
	p.shot("light-degraded")
	require.Greater(t, bright.Seen, 100)
	require.Empty(t, bright.Bad)

	p.prefers("prefers-color-scheme", "dark")
	p.until(`matchMedia("(prefers-color-scheme: dark)").matches`)
	dim := eval[contrast](p, contrasts)
	p.shot("dark")
	require.NotEqual(t, bright.Back, dim.Back)
	require.Greater(t, dim.Seen, 100)
	require.Empty(t, dim.Bad)
}

// focused tells what has the focus, as a screen reader would call it.
const focused = `(() => { const e = document.activeElement; return e.getAttribute("aria-label") ?? e.labels?.[0]?.textContent ?? e.textContent; })()`

func TestAJobIsPausedByTheKeyboardAlone(t *testing.T) {
	s := town(t, dashboard.WithActions(actionsToken))
	p := s.open(1280, 900)
	p.reads("table.jobs", "sweep-sessions")
	reached := false
	for range 80 {
		p.do(chromedp.KeyEvent(kb.Tab))
		if eval[string](p, focused) == "Pause sweep-sessions" {
			reached = true
			break
		}
	}
	require.True(t, reached, "by the tabulator")
	require.NotEqual(t, "none", eval[string](p, `getComputedStyle(document.activeElement).outlineStyle`), "one sees where the focus is")

	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`document.querySelector("dialog").open`)
	require.Equal(t, "Token for actions", eval[string](p, focused))
	p.do(chromedp.KeyEvent("a wrong token, which is long enough"), chromedp.KeyEvent(kb.Enter))
	p.reads("#ask-error", "the token is missing or wrong")
	p.shot("dialog")
	require.Equal(t, "Token for actions", eval[string](p, focused))
	p.do(chromedp.KeyEvent(actionsToken), chromedp.KeyEvent(kb.Enter))
	p.until(`!document.querySelector("dialog").open`)
	p.reads("#toast", "sweep-sessions: paused")
	p.reads("table.jobs .pill", "paused")
	p.until(`(` + focused + `) === "Resume sweep-sessions"`)

	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`document.querySelector("dialog").open`)
	require.Equal(t, "Cancel", eval[string](p, focused), "the token is known by now")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`!document.querySelector("dialog").open`)
	require.Equal(t, "Resume sweep-sessions", eval[string](p, focused))
	require.Empty(t, eval[string](p, `JSON.stringify([localStorage.length, sessionStorage.length, document.cookie]).replace('[0,0,""]', "")`), "the token is kept nowhere")
}

func TestWhatCanBeUsedHasANameForAScreenReader(t *testing.T) {
	s := town(t, dashboard.WithActions(actionsToken))
	p := s.open(1280, 900)
	p.reads("table.jobs", "sweep-sessions")
	p.reads("table.names", "sku:42")
	tree, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	require.NoError(t, err)
	text := func(v *accessibility.Value) string {
		if v == nil {
			return ""
		}
		return string(v.Value)
	}
	roles := map[string][]string{}
	for _, n := range tree.Nodes {
		if !n.Ignored {
			roles[text(n.Role)] = append(roles[text(n.Role)], text(n.Name))
		}
	}
	for _, role := range []string{`"button"`, `"searchbox"`, `"combobox"`, `"table"`, `"columnheader"`, `"rowheader"`, `"link"`} {
		assert.NotEmpty(t, roles[role], role)
		for _, name := range roles[role] {
			assert.NotEmpty(t, name, role)
			assert.NotEqual(t, `""`, name, role)
		}
	}
	assert.Contains(t, roles[`"button"`], `"Pause sweep-sessions"`)
	assert.Contains(t, roles[`"button"`], `"Break sku:42"`)
	assert.Contains(t, roles[`"searchbox"`], `"Filter by name or holder"`)
	assert.Contains(t, roles[`"image"`], `"Timeline of 60 s: 1 term. web-1 leads."`)
	for _, landmark := range []string{`"banner"`, `"main"`, `"navigation"`, `"contentinfo"`, `"status"`, `"heading"`} {
		assert.NotEmpty(t, roles[landmark], landmark)
	}
}
