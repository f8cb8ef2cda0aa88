package docs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/quorum"
	"github.com/quorate/quorate/redlock"
)

// The page's tables are the library's arithmetic, so each row is computed here and looked for there.
func TestTheTablesOfThePageOnChoosingAreTheLibrarysArithmetic(t *testing.T) {
	page := strings.Join(pageLines(t, "docs/choosing.md"), "\n")
	row := func(cells ...any) {
		t.Helper()
		want := "\n| " + strings.TrimSuffix(fmt.Sprintln(join(cells)), "\n") + " |"
		assert.Contains(t, page, want)
	}
	for _, n := range []int{1, 2, 3, 4, 5, 7} {
		assert.Contains(t, page, fmt.Sprintf("\n| %d | %d | %d |", n, quorum.Size(n), n-quorum.Size(n)))
	}
	for _, ms := range []int{500, 1000, 2000, 5000, 8000, 10_000, 30_000, 60_000} {
		ttl := time.Duration(ms) * time.Millisecond
		name := short(ttl)
		if ttl == redlock.DefaultTTL {
			name = "**" + name + "**"
		}
		row(name, short(quorum.Validity(ttl, 0)), short(ttl/3), between(ttl-ttl/3, ttl),
			short(min(redlock.DefaultNodeTimeout, ttl/4)), short(ttl/10))
	}
	for _, s := range []int{2, 10, 30, 60} {
		full := time.Duration(s)*time.Second + quorum.Drift(time.Duration(s)*time.Second)
		row(short(time.Duration(s)*time.Second), fmt.Sprintf("%.1f to %.1f s", (full+time.Second).Seconds(), (full+2*time.Second).Seconds()))
	}
	for ttl, held := range map[time.Duration]string{
		2 * time.Second: "11 min", 8 * time.Second: "45 min", 30 * time.Second: "2 h 47 min",
	} {
		row(short(ttl), held)
		got := (redlock.DefaultMaxExtensions*ttl/3 + ttl).Round(time.Minute)
		assert.Equal(t, held, strings.TrimSuffix(strings.ReplaceAll(strings.ReplaceAll(got.String(), "m0s", " min"), "h", " h "), " "))
	}
	const cost = 6.5e-6 // seconds of CPU, of docs/scaling.md
	assert.Contains(t, strings.Join(pageLines(t, "docs/scaling.md"), "\n"), "| e | extension, of a node | 6.5 µs |")
	for _, held := range []float64{1000, 100_000} {
		for _, ttl := range []float64{2, 8, 30} {
			perSecond := 3 * held / ttl
			assert.Contains(t, page, fmt.Sprintf("%s/s, %s", thousands(perSecond), percent(100*perSecond*cost)))
		}
	}
}

func join(cells []any) string {
	var all []string
	for _, c := range cells {
		all = append(all, fmt.Sprint(c))
	}
	return strings.Join(all, " | ")
}

// short writes a time to the millisecond, with a unit.
func short(d time.Duration) string {
	d = d.Round(time.Millisecond)
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.3f", d.Seconds()), "0"), ".") + " s"
}

func between(from, to time.Duration) string {
	a, b := short(from), short(to)
	if a[strings.Index(a, " "):] == b[strings.Index(b, " "):] {
		a = a[:strings.Index(a, " ")]
	}
	return a + " to " + b
}

func thousands(n float64) string {
	s := fmt.Sprintf("%.0f", n)
	if len(s) > 3 {
		s = s[:len(s)-3] + "," + s[len(s)-3:]
	}
	return s
}

func percent(p float64) string {
	if p < 10 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}

func TestQuorumsOfListsThatDifferByOneNodeShareANode(t *testing.T) {
	disjoint := func(before, after []int) bool {
		for _, a := range quorums(before) {
			for _, b := range quorums(after) {
				if a&b == 0 {
					return true
				}
			}
		}
		return false
	}
	nodes := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for n := 1; n < len(nodes); n++ {
		assert.False(t, disjoint(nodes[:n], nodes[:n+1]), "from %d nodes to one more, or back", n)
	}
	assert.True(t, disjoint([]int{0, 1, 2}, []int{0, 1, 3}), "one exchanged for another")
	assert.True(t, disjoint([]int{0, 1, 2}, nodes[:5]), "two more at once")
}

// quorums are all majorities of a list of nodes, as sets of bits.
func quorums(nodes []int) []int {
	var all []int
	for set := range 1 << len(nodes) {
		members, count := 0, 0
		for i, node := range nodes {
			if set&(1<<i) != 0 {
				members |= 1 << node
				count++
			}
		}
		if count >= quorum.Size(len(nodes)) {
			all = append(all, members)
		}
	}
	return all
}
