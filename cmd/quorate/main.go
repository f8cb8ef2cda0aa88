package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

// A console is what the command talks to: the process's own streams and signals, or a test's.
type console struct {
	in  io.Reader
	out io.Writer
	err io.Writer
	// interactive tells whether a person can be asked.
	interactive func() bool
	// notify has signals sent to a channel, as signal.Notify does, which it is when nil.
	notify func(c chan<- os.Signal, sig ...os.Signal)

	args  []string // the whole command line: see commandLine
	began bool     // the command line made sense, and the work has begun
}

func main() {
	if code, is := besides(os.Args); is {
		os.Exit(code)
	}
	logging.Disable() // go-redis tells of each attempt to connect, on lines of its own

	// A write to a pipe that nobody reads shall be an error of the write, so that what is held is given
	// back. By default it is the end of the process where the pipe is stdout or stderr; and to ignore
	// the signal would have the programs that are run inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	ctx, stop := interruptible(context.Background())
	c := &console{in: os.Stdin, out: os.Stdout, err: os.Stderr, interactive: isTerminal}
	code := c.run(ctx, os.Args)
	stop()
	os.Exit(code)
}

// interruptible is a context that a signal ends, which is its cause then. The next such signal ends the
// process, unless somebody else has asked for it.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	if sig := heeded(endingSignals); len(sig) > 0 { // none would mean all
		signal.Notify(signals, sig...)
	}
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(signalled{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// signals has the signals sent to a channel until stop is called; and first that which has ended ctx, if it
// came before.
func (c *console) signals(ctx context.Context, sig ...os.Signal) (signals <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 16) // more than anybody sends before the first is looked at
	silence := func() {}
	if c.notify != nil {
		c.notify(ch, sig...)
	} else if sig = heeded(sig); len(sig) > 0 {
		signal.Notify(ch, sig...)
		silence = func() { signal.Stop(ch) }
	}
	heard, stopped := make(chan os.Signal), make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() { passOn(ctx, ch, heard, stopped) })
	return heard, func() {
		silence()
		close(stopped)
		ended.Wait()
	}
}

// passOn passes signals on until stopped is closed. One that ends ctx after ch was registered is in ch by then, and
// is not told twice.
func passOn(ctx context.Context, ch <-chan os.Signal, heard chan<- os.Signal, stopped <-chan struct{}) {
	early := ctx.Done()
	for {
		var s os.Signal
		select {
		case s = <-ch:
			if slices.Contains(endingSignals, s) {
				early = nil
			}
		case <-early:
			var before signalled
			if len(ch) > 0 {
				continue // until that is known
			}
			early = nil
			if !errors.As(context.Cause(ctx), &before) {
				continue
			}
			s = before.Signal
		case <-stopped:
			return
		}
		select {
		case heard <- s:
		case <-stopped:
			return
		}
	}
}

// heeded leaves out what whoever started us has had ignored, as nohup does.
func heeded(signals []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(signals), signal.Ignored)
}

// isTerminal reports whether there is a person at both ends.
func isTerminal() bool {
	for _, f := range []*os.File{os.Stdin, os.Stderr} {
		info, err := f.Stat()
		if err != nil || info.Mode()&os.ModeCharDevice == 0 {
			return false
		}
	}
	return true
}
