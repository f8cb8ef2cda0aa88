package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestACommandLineThatMakesNoSenseIsExitCode2AndOneLine(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for line, want := range map[string]string{
		"rnu x -- true":                                "did you mean run?",
		"help rnu":                                     "did you mean run?",
		"completion tcsh":                              "tcsh",
		"--nods x run x -- true":                       "did you mean --nodes?",
		"run --tll 3s x -- true":                       "there is no flag --tll; did you mean --ttl?",
		"run --ttl soon x -- true":                     "--help",
		"run --ttl":                                    "needs an argument",
		"run x true":                                   "put -- before the program",
		"run x":                                        "put -- before the program",
		"run x --":                                     "no program behind --",
		"run -- true":                                  "NAME is missing",
		"run x y -- true":                              `"y" is one argument too many`,
		"run -- x -- true":                             "NAME is missing",
		"run --identity -- x":                          "--",
		"run --grace 4s x -- true":                     "--grace 4s: with --ttl 8s it is between 0 and 3.6s",
		"run --grace -1s x -- true":                    "--grace -1s",
		"run --wait 1s --no-wait x -- true":            "exclude each other",
		"run --wait 0s x -- true":                      "--no-wait asks once",
		"run --max-duration 0s x -- true":              "--max-duration",
		"run --ttl 11s x -- true":                      "--max-ttl",
		"run --ttl 1ms x -- true":                      "TTL too short",
		"run --identity= x -- true":                    "identity",
		"run " + strings.Repeat("n", 513) + " -- true": "invalid name",
		"lead x":                                       "put -- before the program",
		"lead --priority 101 x -- true":                "priority",
		"lead --label zone x -- true":                  `--label "zone" is not KEY=VALUE`,
		"lead --stop-grace -1s x -- true":              "--stop-grace",
		"lead --max-term -1s x -- true":                "",
		"lead --health-every 1s --health-cmd true --ttl 1ms x -- true": "TTL too short",
		"cron x -- true":                              "SPEC is missing",
		"cron x @hourly @daily -- true":               "is something not quoted?",
		"cron x @sometimes -- true":                   "invalid spec",
		"cron x @hourly --overlap maybe -- true":      "--overlap",
		"cron x @hourly --misfire all:0 -- true":      "--misfire",
		"cron x @hourly --misfire all:x -- true":      "--misfire",
		"cron x @hourly --misfire all:1001 -- true":   "",
		"cron x @hourly --dst-gap maybe -- true":      "--dst-gap",
		"cron x @hourly --dst-fold maybe -- true":     "--dst-fold",
		"cron x @hourly --timezone Mars/Base -- true": "--timezone",
		"cron x @hourly --retry -1 -- true":           "--retry",
		"cron x @hourly --at-least-once 0 -- true":    "",
		"cron x @hourly --concurrency 4 -- true":      "--overlap allow",
		"cron x @hourly --drain -1s -- true":          "",
		"cron x @hourly --jitter -1s -- true":         "",
		"man run":                                     "man takes no arguments",
		"--output xml run":                            "",
	} {
		code, out, told := quorate(t, f, strings.Split(line, " ")...)
		assert.Equal(t, exitUsage, code, "%s: %s", line, told)
		assert.Empty(t, out, line)
		assert.Regexp(t, `^quorate: [^\n]+\n$`, told, line)
		assert.Contains(t, told, want, line)
	}
}

func TestSettingsInTheEnvironmentAreReadAsFlagsAre(t *testing.T) {
	t.Setenv("QUORATE_MAX_TTL", "soon")
	code, _, told := quorate(t, nil, "run", "x", "--", "true")
	require.Equal(t, exitUsage, code, told)
	require.Contains(t, told, "QUORATE_MAX_TTL")
}

func TestNodesThatAreNoneAreExitCode2(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[string]string{
		"":                 "no nodes",
		" , ":              "no nodes",
		"http://127.0.0.1": "http",
		"127.0.0.1:6379":   "redis://",
		"redis://127.0.0.1:1,redis://127.0.0.1:1": "same server",
	} {
		code, _, told := quorate(t, nil, "--nodes", nodes, "run", "x", "--", "true")
		assert.Equal(t, exitUsage, code, "%s: %s", nodes, told)
		assert.Contains(t, told, want, nodes)
	}
}

func TestAPasswordInAURLIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://u:sesame@h", "redis://u:sesame@h:port", "redis://u:sesame@h/%zz", "sesame@:h://",
		"redis://:sesame,x@h:1", "redis://u:1,sesame:x@h:1", "redis://:sesame/x@h:1", "redis://:1/sesame@h:1", "redis://u:x#sesame@h"} {
		code, out, told := quorate(t, nil, "--nodes", url, "run", "x", "--", "true")
		assert.Equal(t, exitUsage, code, told)
		assert.NotContains(t, out+told, "sesame", url)
	}
}

func TestTwoAddressesOfOneServerAreExitCode2(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	front := newProxy(t, f.Addrs()[0])
	code, out, told := quorate(t, nil, "--nodes", urls(f.Addrs()[0], front, f.Addrs()[1]), "run", "x", "--", "echo", "ran")
	require.Equal(t, exitUsage, code, told)
	require.Contains(t, told, "same server")
	require.Empty(t, out)
	requireFree(t, f, "x")
}

func TestNodesThatCannotBeAskedAreExitCode121(t *testing.T) {
	t.Parallel()
	web := &http.Server{ReadHeaderTimeout: time.Second}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = web.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = web.Close()
		<-served
	})
	for _, how := range [][]string{{"--no-wait"}, {"--wait", "100ms"}} {
		for what, nodes := range map[string]string{
			"nobody there": urls("127.0.0.1:1"),
			"no redis":     urls(listener.Addr().String()),
		} {
			code, out, told := quorate(t, nil, append(append([]string{"--nodes", nodes, "run", "--quiet"}, how...), "x", "--", "echo", "ran")...)
			assert.Equal(t, exitNoQuorum, code, "%s: %s", what, told)
			assert.Empty(t, out, what)
			assert.Regexp(t, `^quorate: [^\n]+\n$`, told, what)
		}
	}
}

func TestAFreshFleetIsWaitedForOrTheLineSaysHowLong(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redlocktest.WithUptime(0))
	code, _, told := quorate(t, f, "run", "--no-wait", "x", "--", "true")
	require.Equal(t, exitNoQuorum, code)
	require.Regexp(t, `in quarantine after a restart; they count again in [0-9.]+s`, told)
	code, out, told := quorate(t, f, "run", "--max-ttl", "4s", "--ttl", "4s", "x", "--", "echo", "ran")
	for began := time.Now(); code == exitLeaseLost && time.Since(began) < patience; { // a machine that stands still
		code, out, told = quorate(t, f, "run", "--max-ttl", "4s", "--ttl", "4s", "x", "--", "echo", "ran")
	}
	require.Zero(t, code, told)
	require.Equal(t, "ran\n", out)
}

func TestEveryExitCodeHasItsErrors(t *testing.T) {
	t.Parallel()
	taken := &redlock.QuorumError{Op: "acquire", Name: "x", Err: redlock.ErrTaken}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{status(7), 7},
		{net.ErrClosed, exitFailed},
		{usagef("x"), exitUsage},
		{redlock.ErrInvalidName, exitUsage},
		{redlock.ErrTTLTooLong, exitUsage},
		{redlock.ErrSameServer, exitUsage},
		{taken, exitTaken},
		{&redlock.AcquireError{Err: context.DeadlineExceeded, Last: taken}, exitTaken},
		{&redlock.QuorumError{Err: redlock.ErrNoQuorum, Nodes: []*redlock.NodeError{{Node: "a", Err: redlock.ErrNodeTimeout}}}, exitNoQuorum},
		{redlock.ErrQuarantined, exitNoQuorum},
		{&redlock.LeaseError{Err: redlock.ErrLeaseExpired, Last: taken}, exitLeaseLost},
		{redlock.ErrExtensionLimit, exitLeaseLost},
		{failuref(exitCannotRun, "x"), exitCannotRun},
		{failuref(exitNotFound, "x"), exitNotFound},
		{signalled{syscall.SIGTERM}, 143},
		{context.Canceled, exitInterrupted},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, exitPipe},
	} {
		assert.Equal(t, c.want, exitCode(c.err), "%v", c.err)
	}
}

func TestAnInterruptionHasTheCodeOfItsSignalAndNoLine(t *testing.T) {
	t.Parallel()
	c := newCall(t)
	c.console.began = true
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(signalled{syscall.SIGTERM})
	told := c.console.report(ctx, &redlock.AcquireError{Name: "x", Err: context.Canceled})
	require.Equal(t, 143, told)
	require.Empty(t, c.err.String())
}

func TestNoCommandIsHelpOnStderr(t *testing.T) {
	t.Parallel()
	code, out, told := quorate(t, nil)
	require.Equal(t, exitUsage, code)
	require.Empty(t, out)
	require.Contains(t, told, "Usage: quorate COMMAND")
}

func TestHelpIsTheSameInAllWaysAndFits(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "run", "lead", "cron", "man"} {
		way, other := []string{name, "--help"}, []string{"help", name}
		if name == "" {
			way, other = way[1:], other[:1]
		}
		code, out, told := quorate(t, nil, way...)
		require.Zero(t, code, told)
		require.Empty(t, told)
		_, also, _ := quorate(t, nil, other...)
		require.Equal(t, out, also)
		for line := range strings.SplitSeq(out, "\n") {
			assert.LessOrEqual(t, len([]rune(line)), 100, "%s: %s", name, line)
		}
	}
}

func TestFlagsOfAllCommandsMayStandOnEitherSide(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	nodes := strings.Join(f.URLs(), ",")
	for _, line := range [][]string{
		{"--nodes", nodes, "run", "x"},
		{"run", "--nodes", nodes, "x"},
		{"run", "x", "--nodes=" + nodes},
		{"run", "--nodes", f.URLs()[0], "--nodes", f.URLs()[1], "--nodes", f.URLs()[2], "x"},
	} {
		code, _, told := quorate(t, nil, append(line, "--", "true")...)
		assert.Zero(t, code, told)
	}
}

func TestTheManualNamesEveryCommandFlagAndExitCode(t *testing.T) {
	t.Parallel()
	code, page, told := quorate(t, nil, "man")
	require.Zero(t, code, told)
	root := newCall(t).console.root()
	plain := strings.NewReplacer(`\-`, "-", `\e`, `\`, `\(aq`, "'").Replace(page)
	for _, command := range append(root.VisibleCommands(), root) {
		if command != root {
			assert.Contains(t, plain, "\n.SS "+command.Name)
		}
		for _, flag := range command.Flags {
			doc, ok := flag.(cli.VisibleFlag)
			if ok && !doc.IsVisible() {
				continue
			}
			names, _ := describe(flag)
			assert.Contains(t, plain, "\n.B "+names+"\n", "flag of %s", command.Name)
		}
	}
	for _, e := range exitCodes {
		assert.Contains(t, plain, "\n.B "+e.code+"\n")
	}
	for line := range strings.SplitSeq(page, "\n") {
		assert.False(t, strings.HasPrefix(line, "'"), "roff takes this for a request: %s", line)
	}
	if groff, err := exec.LookPath("groff"); err == nil {
		cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
		cmd.Stdin = strings.NewReader(page)
		warnings, err := cmd.CombinedOutput()
		require.NoError(t, err)
		require.Empty(t, string(warnings))
	}
}

func TestCompletionKnowsCommandsAndFlags(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "pwsh"} {
		code, script, told := quorate(t, nil, "completion", shell)
		require.Zero(t, code, told)
		require.NotEmpty(t, script)
	}
	for line, want := range map[string]string{
		"run --ma":    "--max-duration:",
		"cron --over": "--overlap:",
		"run --nod":   "--nodes:",
	} {
		args := append(strings.Fields(line), "--generate-shell-completion")
		code, out, told := quorate(t, nil, args...)
		require.Zero(t, code, told)
		assert.Contains(t, out, want, line)
	}
	out, err := process(t, nil, "--generate-shell-completion").Output() // of what os.Args has
	require.NoError(t, err)
	require.Contains(t, string(out), "run:run a program")
}

// newProxy is another address of a server.
func newProxy(t *testing.T, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		forward(listener, address)
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// forward joins connections to the address until the listener is closed.
func forward(listener net.Listener, address string) {
	var joined sync.WaitGroup
	defer joined.Wait()
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", address)
		if err != nil {
			_ = from.Close()
			continue
		}
		for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
			joined.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				_ = way[0].Close()
			})
		}
	}
}
