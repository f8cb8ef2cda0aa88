package browser

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

var shots = flag.String("shots", "", "keep pictures of the pages in this directory")

// soon bounds each wait for the page. It is long for busy machines: what is fast is measured elsewhere.
const soon = time.Minute

var (
	quiet  = slog.New(slog.NewTextHandler(io.Discard, nil))
	chrome context.Context // the browser, in which each test has a tab
)

func TestMain(m *testing.M) {
	flag.Parse()
	logging.Disable() // go-redis reports each dial that a fault makes fail
	os.Exit(run(m))
}

func run(m *testing.M) int {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.WSURLReadTimeout(time.Minute))
	if os.Geteuid() == 0 { // Chromium has no sandbox for root
		opts = append(opts, chromedp.NoSandbox)
	}
	if path := os.Getenv("CHROME"); path != "" {
		opts = append(opts, chromedp.ExecPath(path))
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	var quit context.CancelFunc
	chrome, quit = chromedp.NewContext(allocator)
	if err := chromedp.Do(chrome); err != nil {
		fmt.Fprintln(os.Stderr, "the browser did not start; run make chromium, or set CHROME:", err)
		stop()
		return 1
	}
	browser := chromedp.FromContext(chrome).Allocator
	status := m.Run()
	quit()
	stop()
	browser.Wait()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}
