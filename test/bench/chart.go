package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// The chart's measures, in pixels.
const (
	chartWidth = 960
	textWidth  = 430
	barRoom    = chartWidth - textWidth - 110 // what is left is for the figures
	lineHeight = 22
	topRoom    = 56
)

// chart is the picture of all aims: a bar for each, to the right where the figure is better than its
// aim and to the left where it is worse, on a logarithmic scale. Its colours follow the reader's
// choice of light or dark.
func (r *record) chart() string {
	type bar struct {
		row int
		aim aim
		of  string
	}
	var bars []bar
	lowest, highest := 0.5, 2.0
	for _, f := range r.inOrder() {
		for _, a := range f.Aims {
			if a.Bound == 0 {
				continue // nothing is so many times better than none
			}
			bars = append(bars, bar{f.Number, a, f.Title})
			lowest, highest = min(lowest, a.margin()), max(highest, a.margin())
		}
	}
	lowest = max(lowest, 0.05)
	scale := func(v float64) float64 {
		v = math.Log(min(max(v, lowest), highest))
		return textWidth + barRoom*(v-math.Log(lowest))/(math.Log(highest)-math.Log(lowest))
	}
	height := topRoom + lineHeight*len(bars) + 30

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Figures compared with their aims">
<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.faint { fill: #59636e }
.grid { stroke: #d1d9e0 }
.one { stroke: #59636e; stroke-width: 1.5 }
.kept { fill: #1a7f37 }
.missed { fill: #cf222e }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.faint { fill: #9198a1 }
.grid { stroke: #3d444d }
.one { stroke: #9198a1 }
.kept { fill: #3fb950 }
.missed { fill: #f85149 }
}
</style>
<text class="title" x="0" y="18">How many times better than its aim each figure is</text>
`, chartWidth, height, chartWidth, height)
	bottom := topRoom + lineHeight*len(bars)
	for _, tick := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if tick < lowest || tick > highest {
			continue
		}
		class := "grid"
		if tick == 1 {
			class = "one"
		}
		x := scale(tick)
		fmt.Fprintf(&b, `<line class="%s" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", class, x, topRoom-6, x, bottom)
		fmt.Fprintf(&b, `<text class="faint" x="%.1f" y="%d" text-anchor="middle">%s×</text>`+"\n", x, topRoom-12, number(tick))
	}
	one := scale(1)
	for i, bar := range bars {
		y := topRoom + lineHeight*i
		class := "kept"
		if !bar.aim.kept() {
			class = "missed"
		}
		end := scale(bar.aim.margin())
		fmt.Fprintf(&b, `<text x="0" y="%d"><tspan class="faint">%d </tspan>%s</text>`+"\n", y+15, bar.row, escape(shorten(bar.of+": "+bar.aim.What, 62)))
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n",
			class, min(one, end), y+4, max(2, math.Abs(end-one)), lineHeight-8)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", max(one, end)+6, y+15, escape(unit(bar.aim.Figure, bar.aim.Unit)))
	}
	fmt.Fprintf(&b, `<text class="faint" x="0" y="%d">Logarithmic. The line at 1× is the aim; beside each bar is the figure itself.</text>`+"\n</svg>\n", bottom+20)
	return b.String()
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return b.String()
}

func shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
