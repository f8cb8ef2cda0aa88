package dashboard

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxText is the longest text that is not a name, in runes.
const maxText = 300

// show makes a text that others have chosen fit to be read: what does not print, is no UTF-8, or turns the
// direction of writing becomes an escape. A backslash is doubled, so that no text looks like another's escape.
func show(s string) string {
	plain := true
	for _, r := range s {
		if r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r) {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// brief shows a text, and no more of it than a line or two.
func brief(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxText {
			return show(s[:i]) + "…"
		}
	}
	return show(s)
}

// explain is what an error says, without what goes without saying here.
func explain(err error) string {
	if err == nil {
		return ""
	}
	return brief(err.Error())
}

// idOf is a name in a form that survives JSON, whatever bytes it has.
func idOf(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

func nameOf(id string) (string, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(b) == 0 {
		return "", fmt.Errorf("no name has the id %.64q; take it from the page's data", id)
	}
	return string(b), nil
}

// maxStamp is the last moment that JavaScript has a date for. A later one is an exception there, which would take
// the table along that it is in.
const maxStamp = 8_640_000_000_000_000

// stamp is a moment as the page has it: Unix milliseconds, and 0 for none.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return min(max(t.UnixMilli(), -maxStamp), maxStamp)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
