package dashboard_test

import (
	"context"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

// hostile are names that somebody may choose who means harm.
var hostile = map[string]string{ // and how each is to be shown
	`<script>alert(1)</script>`:                `<script>alert(1)</script>`,
	`"><img src=x onerror=alert(1)>`:           `"><img src=x onerror=alert(1)>`,
	`javascript:alert(1)`:                      `javascript:alert(1)`,
	"line\nevent: fleet\ndata: 1\n\n":          `line\x0aevent: fleet\x0adata: 1\x0a\x0a`,
	"nul\x00bell\x07esc\x1b[31m":               `nul\x00bell\x07esc\x1b[31m`,
	"\xff\xfe not UTF-8 \xc3":                  `\xff\xfe not UTF-8 \xc3`,
	"replaced \ufffd":                          "replaced \ufffd",
	"evil\u202egpj.exe":                        `evil\u202egpj.exe`,
	"zero\u200bwidth":                          `zero\u200bwidth`,
	"separators\u2028\u2029":                   `separators\u2028\u2029`,
	`evil\u202egpj.exe`:                        `evil\\u202egpj.exe`,
	"tag\U000e0041":                            `tag\U000e0041`,
	strings.Repeat("é", 256):                   strings.Repeat("é", 256),
	strings.Repeat("\x01", 512):                strings.Repeat(`\x01`, 512),
	"__proto__":                                "__proto__",
	"constructor":                              "constructor",
	strings.Repeat("W", redlock.MaxNameLength): strings.Repeat("W", redlock.MaxNameLength),
}

func TestNamesOfAnyKindReachThePageAsReadableText(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a", redlock.WithIdentity("<b>\u202eowner"))
		recorder := dashboard.NewRecorder()
		for name := range hostile {
			hold(t, locker, name)
			recorder.Observe(redlock.Event{Kind: redlock.Acquired, Name: name, Wait: 1})
		}
		h := newBoard(t, locker, dashboard.WithContention(recorder))
		p := look(t, h)
		settle()
		shown := map[string]bool{}
		for _, row := range names(t, h, "").Rows {
			shown[row["name"].(string)] = true
			require.Contains(t, row["holder"], `<b>\u202eowner/`)
		}
		for name, want := range hostile {
			require.True(t, shown[want], "%q is not shown as %q", name, want)
			require.NotNil(t, p.row("contention", want), "%q", name)
		}
		require.Len(t, shown, len(hostile))
		for text := range shown {
			require.True(t, utf8.ValidString(text))
			for _, r := range text {
				require.True(t, unicode.IsPrint(r), "%q has %U", text, r)
			}
		}
		require.Equal(t, "ok", p.fleet()["state"], "no name is an event of its own")
		w := get(t, h, "/names")
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.NotContains(t, w.Body.String(), "<script>", "also where a browser would take it for a page")
	})
}

func TestJobsAndErrorsOfAnyKindReachThePageAsReadableText(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		sched, err := scheduler.New(locker, scheduler.WithLogger(quiet), scheduler.WithIdentity("<i>\u202ereplica"))
		require.NoError(t, err)
		job := "<script>alert(2)</script>\u202e"
		require.NoError(t, sched.Add(job, "@every 1s", func(context.Context, scheduler.Run) error {
			return &redlock.NodeError{Node: "\u202e\x00" + strings.Repeat("x", 5000), Err: redlock.ErrTaken}
		}))
		background(t, sched.Run)
		p := look(t, newBoard(t, locker))
		settle()
		row := p.row("jobs", `<script>alert(2)</script>\u202e`)
		require.NotNil(t, row)
		run := row["runs"].([]any)[0].(map[string]any)
		require.Equal(t, `<i>\u202ereplica`, run["replica"])
		require.True(t, strings.HasPrefix(run["err"].(string), `\u202e\x00xxx`), run["err"])
		require.Less(t, len(run["err"].(string)), 1000)
	})
}

func TestAnElectionThatIsNoElectionDoesNoHarm(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		for i, state := range []string{
			`{"lease":"x","leader":"<script>","number":9007199254740993,"since":"9999-12-31T23:59:59Z"}`,
			`{"v":2,"lease":"x","leader":"` + strings.Repeat("y", 2000) + `","number":1,"labels":{"\u202e":"<b>"}}`,
			`{"lease":{}}`, `[`, "\xff",
		} {
			lease := hold(t, locker, "fake-"+string(rune('a'+i)))
			nonce := lease.Owner()[strings.LastIndexByte(lease.Owner(), '/')+1:]
			require.NoError(t, lease.Save(t.Context(), []byte(strings.Replace(state, `"x"`, `"`+nonce+`"`, 1))))
		}
		p := look(t, newBoard(t, locker))
		settle()
		require.Equal(t, "ok", p.fleet()["state"])
		for _, row := range p.rows("elections") {
			for _, term := range row["terms"].([]any) {
				require.LessOrEqual(t, term.(map[string]any)["since"], float64(redlocktest.NewClock().Now().UnixMilli()), "no term begins in the future")
				require.LessOrEqual(t, len(term.(map[string]any)["leader"].(string)), 310)
			}
		}
		require.Len(t, p.rows("elections"), 2)
	})
}

func TestAnElectionWhoseNameIsNoTextIsOneRowAndCanBeResignedFrom(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		const name = "bill\xffing"
		ours, _ := campaign(t, locker, name)
		h := newBoard(t, locker, dashboard.WithActions(token), dashboard.WithElectors(ours))
		p := look(t, h)
		settle()
		require.Len(t, p.rows("elections"), 1)
		row := p.row("elections", `bill\xffing`)
		require.Equal(t, true, row["ours"])
		require.Equal(t, true, row["leading"])
		status, answer := ask(h, "resign", name, nil)
		require.Equal(t, 200, status, answer)
		require.False(t, ours.IsLeader())
	})
}
