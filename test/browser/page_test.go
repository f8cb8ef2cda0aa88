package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A tab is a page of the browser, and what went wrong in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string // exceptions, errors on the console, and dialogs
}

// blank opens an empty tab of this size.
func blank(t *testing.T, width, height int64) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chrome)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, p.listen))
	p.do(chromedp.EmulateViewport(width, height))
	return p
}

// open opens the dashboard in a tab of this size.
func (s *stage) open(width, height int64) *tab {
	s.t.Helper()
	p := blank(s.t, width, height)
	p.do(chromedp.Navigate(s.url))
	return p
}

// listen is called where no command may be given: a dialog stays open, and so fails the test by itself.
func (p *tab) listen(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = fmt.Sprint("exception: ", e.ExceptionDetails.Text)
		if e.ExceptionDetails.Exception != nil {
			problem += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" {
			problem = "an error on the console"
		}
	case *page.EventJavascriptDialogOpening:
		problem = "dialog: " + e.Message
	}
	if problem != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, problem)
	}
}

func (p *tab) found() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problems
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, soon)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, actions...))
}

// eval gives what an expression is in the page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, soon)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return value
}

// until waits until an expression is true in the page.
func (p *tab) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, soon)
	defer cancel()
	require.EventuallyWithT(p.t, func(c *assert.CollectT) {
		value, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		assert.NoError(c, err)
		assert.True(c, value)
	}, soon, 20*time.Millisecond, "in the page: %s", expression)
}

// reads waits until an element's text has this in it.
func (p *tab) reads(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))`, selector, text))
}

// shot keeps a picture, where somebody wants one.
func (p *tab) shot(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	require.NoError(p.t, err)
	require.NoError(p.t, os.MkdirAll(*shots, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(*shots, name+".png"), picture, 0o644))
}

// prefers sets a preference of the system's, such as that for dark colours.
func (p *tab) prefers(feature, value string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
	})
	require.NoError(p.t, err)
}
