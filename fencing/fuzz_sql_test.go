package fencing

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// Whatever a name has in it, what it becomes in a statement is one identifier, which stands for this
// name and no other, or the name is refused.
func FuzzIdentifiersStayInTheirQuotes(f *testing.F) {
	for _, name := range []string{"fence", "a.b", "a.b.c", `a"b`, "a`b", `"`, "``", `\`, "a; DROP TABLE x --", "a\x00b", "\xff", "", ".", "a ", "select", "日本", strings.Repeat("x", 64)} {
		f.Add(name, "other")
		f.Add("other", name)
	}
	f.Fuzz(func(t *testing.T, name, other string) {
		for d := PostgreSQL; d <= SQLite; d++ {
			mark := "`"
			if d == PostgreSQL {
				mark = `"`
			}
			if err := checkIdentifier("column", name); err != nil {
				require.ErrorIs(t, err, redlock.ErrInvalidOption)
				require.Less(t, len(err.Error()), 1000)
				continue
			}
			quoted := d.quote(name)
			inner, found := strings.CutPrefix(quoted, mark)
			require.True(t, found)
			inner, found = strings.CutSuffix(inner, mark)
			require.True(t, found)
			require.NotContains(t, strings.ReplaceAll(inner, mark+mark, ""), mark, "the quotes end early")
			require.Equal(t, name, strings.ReplaceAll(inner, mark+mark, mark))
			if other != name && checkIdentifier("column", other) == nil {
				require.NotEqual(t, quoted, d.quote(other))
			}
			if checkTable(name) == nil {
				require.Len(t, strings.Split(d.quoteTable(name), mark+"."+mark), strings.Count(name, ".")+1)
			}
		}
	})
}

// What SetHeader writes, ParseHeader reads, whatever the resources are called; and whatever else it
// reads, it never makes a token that no lease can have.
func FuzzHeaders(f *testing.F) {
	f.Add("sku:42", "33", "a,b", int64(34))
	f.Add("%zz", "0", "ü\n", int64(1))
	f.Add("a,b", "1,2", "", int64(-1))
	f.Add("a,%61", " 1 ,\t2", "\xff", int64(1<<53))
	f.Add("a+b%2B", "9007199254740991", "%41", int64(1<<53-1))
	f.Fuzz(func(t *testing.T, resources, numbers, name string, token int64) {
		h := http.Header{HeaderResource: {resources}, HeaderToken: {numbers}}
		tokens, err := ParseHeader(h)
		if err != nil {
			require.True(t, errors.Is(err, ErrInvalidHeader) || errors.Is(err, ErrNoToken), "%v", err)
			require.Less(t, len(err.Error()), 2000)
		}
		for resource, token := range tokens {
			require.NoError(t, checkTicket(resource, token))
		}
		if err != nil {
			tokens = Tokens{}
		}
		if checkTicket(name, redlock.Token(token)) == nil && len(tokens) < maxHeaderTokens {
			tokens[name] = redlock.Token(token)
		}
		if len(tokens) == 0 {
			return
		}
		tokens.SetHeader(h)
		for _, lines := range h {
			for _, line := range lines {
				require.NotContains(t, line, ",")
				require.NotContains(t, line, "\n")
			}
		}
		again, err := ParseHeader(h)
		require.NoError(t, err)
		require.Equal(t, tokens, again)
		joined, err := ParseHeader(http.Header{
			HeaderResource: {strings.Join(h[HeaderResource], ", ")}, HeaderToken: {strings.Join(h[HeaderToken], ",")},
		})
		require.NoError(t, err)
		require.Equal(t, tokens, joined)
	})
}
