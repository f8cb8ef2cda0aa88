package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output may be read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// documented are the names in the first cells of a table of docs/telemetry.md, or in the second ones.
func documented(t *testing.T, row *regexp.Regexp) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/telemetry.md")
	require.NoError(t, err)
	var names []string
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		names = append(names, m[1])
	}
	require.NotEmpty(t, names)
	return names
}

func TestOneRunShowsEachSpanAndEachMetric(t *testing.T) {
	spans := documented(t, regexp.MustCompile("(?m)^\\| `((?:redlock|leader|scheduler|fencing)\\.[a-z]+)` \\|"))
	metrics := documented(t, regexp.MustCompile("(?m)^\\| `quorate[a-z._]+` \\| `(quorate_[a-z_]+)` \\|"))
	require.Len(t, spans, 6)
	require.Greater(t, len(metrics), 15)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errOut output
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"-for", "4m", "-listen", "127.0.0.1:0"}, &out, &errOut) }()
	var url string
	require.Eventually(t, func() bool {
		_, rest, found := strings.Cut(out.String(), "metrics: ")
		url, _, _ = strings.Cut(rest, "\n")
		return found
	}, time.Minute, 10*time.Millisecond)

	var missing []string
	complete := assert.Eventually(t, func() bool {
		missing = nil
		scraped, printed := get(t, url), out.String()
		for _, name := range metrics {
			if !strings.Contains(scraped, "\n# TYPE "+name+" ") {
				missing = append(missing, name)
			}
		}
		for _, name := range spans {
			if !strings.Contains(printed, " "+name+" ") {
				missing = append(missing, name)
			}
		}
		return len(missing) == 0
	}, 3*time.Minute, 200*time.Millisecond)
	_, health := ask(t, strings.Replace(url, "/metrics", "/healthz/r1", 1)) // it may be stuck at this moment
	assert.Contains(t, health, `"name":"billing"`)
	cancel()
	require.Zero(t, <-ended, errOut.String())
	require.True(t, complete, "not seen: %v", missing)
	require.Contains(t, out.String(), " outcome=ok → ", "a run or a section is linked to its lease")
}

func get(t *testing.T, url string) string {
	t.Helper()
	status, body := ask(t, url)
	require.Equal(t, http.StatusOK, status, body)
	return body
}

func ask(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func TestWithoutMishapsNothingGoesWrong(t *testing.T) {
	wrong := withoutMishaps(t)
	// A machine that stands still is a mishap of its own: nodes are late then, and with them all that needs them.
	late := regexp.MustCompile(`did not answer in time|answers again|nothing was guarded`)
	for first := time.Now(); late.MatchString(strings.Join(wrong, "")) && time.Since(first) < 2*time.Minute; {
		t.Logf("again, for nodes were late: %v", wrong)
		wrong = withoutMishaps(t)
	}
	require.Empty(t, wrong)
}

// withoutMishaps gives what went wrong all the same.
func withoutMishaps(t *testing.T) (wrong []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	var out, errOut output
	require.Zero(t, run(ctx, []string{"-mishaps=false", "-listen", "127.0.0.1:0"}, &out, &errOut))
	if !strings.Contains(out.String(), "fencing.guard") {
		wrong = append(wrong, "nothing was guarded")
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "error=") && !strings.Contains(line, "outcome=deadline_exceeded") { // which the end of the test's time has interrupted
			wrong = append(wrong, line)
		}
	}
	for line := range strings.Lines(errOut.String()) {
		wrong = append(wrong, line)
	}
	return wrong
}

func TestItSaysWhatIsWrongWithItsArguments(t *testing.T) {
	for args, says := range map[string]string{
		"-replicas 0":              "-replicas 0 is not between",
		"-for -1s":                 "-for -1s is negative",
		"more":                     `unexpected argument "more"`,
		"-nodes 127.0.0.1:1":       "node 1: ",
		"-listen 127.0.0.1:999999": "choose another address with -listen",
	} {
		var out, errOut output
		assert.NotZero(t, run(t.Context(), strings.Fields(args), &out, &errOut), args)
		assert.Contains(t, errOut.String(), says, args)
	}
}
