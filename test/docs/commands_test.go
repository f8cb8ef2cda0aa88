package docs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

const module = "github.com/quorate/quorate"

// notChecked are commands that are not tried, each with its reason.
var notChecked = map[string]string{}

func TestTheCommandsOfThePagesExistAndKnowTheirFlags(t *testing.T) {
	blocks, err := AllBlocks(Root, "sh")
	require.NoError(t, err)
	targets := makeTargets(t)
	found := 0
	for _, b := range blocks {
		commands, err := Commands(b)
		require.NoError(t, err)
		for _, c := range commands {
			found++
			if notChecked[c.String()] != "" || c.Args[0] == "quorate" {
				continue
			}
			if err := check(t, c, targets); err != nil {
				t.Errorf("%s: %s: %v", c.At, c, err)
			}
		}
	}
	require.Greater(t, found, 10, "the commands were not found")
}

// The same for what prose says in passing: `make x`.
func TestTheMakeTargetsThatProseNamesExist(t *testing.T) {
	targets := makeTargets(t)
	named := regexp.MustCompile("`make ([a-z-]+)")
	pages, err := Pages(Root)
	require.NoError(t, err)
	found := 0
	for _, page := range pages {
		for i, line := range pageLines(t, page) {
			for _, m := range named.FindAllStringSubmatch(line, -1) {
				found++
				assert.True(t, targets[m[1]], "%s:%d: there is no target %s", page, i+1, m[1])
			}
		}
	}
	require.Greater(t, found, 10, "the targets were not found")
}

// check tells what is wrong with a command.
func check(t *testing.T, c Command, targets map[string]bool) error {
	t.Helper()
	dir := filepath.Join(Root, c.Dir)
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	switch {
	case c.Args[0] == "make":
		for _, arg := range c.Args[1:] {
			if !assignment.MatchString(arg) && !targets[arg] {
				return errors.New("there is no target " + arg)
			}
		}
		return nil
	case len(c.Args) > 3 && c.Args[0] == "docker" && c.Args[1] == "compose" && c.Args[2] == "-f":
		_, err := os.Stat(filepath.Join(dir, c.Args[3])) // what is in it has a test in test/deploy
		return err
	case c.Args[0] == "export":
		name, _, _ := strings.Cut(c.Args[1], "=")
		return contains(filepath.Join(Root, "cmd/quorate"), `"`+name+`"`)
	case c.Args[0] == "go" && len(c.Args) > 2:
		return checkGo(t, dir, c.Args[1], c.Args[2:])
	}
	return errors.New("nobody knows how to check this: teach the test, or put it on the list with a reason")
}

func checkGo(t *testing.T, dir, verb string, args []string) error {
	t.Helper()
	switch verb {
	case "get":
		if args[0] != module && !strings.HasPrefix(args[0], module+"/") {
			return errors.New("not a module of this project")
		}
		_, err := os.Stat(filepath.Join(Root, strings.TrimPrefix(args[0], module), "go.mod"))
		return err
	case "install":
		path, _, _ := strings.Cut(args[0], "@")
		return build(t, Root, "."+strings.TrimPrefix(path, module), nil)
	case "build":
		return build(t, dir, args[len(args)-1], nil)
	case "run":
		return build(t, dir, args[0], args[1:])
	case "test":
		out, err := exec.Command("go", "-C", dir, "list", "-f", "{{len .TestGoFiles}}{{len .XTestGoFiles}}", args[len(args)-1]).CombinedOutput()
		if err == nil && strings.TrimSpace(string(out)) == "00" {
			err = errors.New("there are no tests")
		}
		return err
	}
	return errors.New("nobody knows how to check go " + verb)
}

// build builds a program, and asks it for its flags if there are any.
func build(t *testing.T, dir, path string, args []string) error {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "-C", dir, "build", "-o", program, path).CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	if info, err := os.Stat(program); err != nil || info.IsDir() {
		return errors.New("this is no program")
	}
	usage := ""
	for _, arg := range args {
		flag, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") {
			continue
		}
		if usage == "" {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			out, _ := exec.CommandContext(ctx, program, "-h").CombinedOutput() // flag says 2, or 0
			usage = string(out)
		}
		if !regexp.MustCompile(`(?m)-` + regexp.QuoteMeta(flag) + `\b`).MatchString(usage) {
			return errors.New("it has no flag -" + flag)
		}
	}
	return nil
}

func contains(dir, text string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if strings.Contains(string(content), text) {
			return nil
		}
	}
	return errors.New(dir + " does not know " + text)
}

func makeTargets(t *testing.T) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(Root, "Makefile"))
	require.NoError(t, err)
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(string(content), -1) {
		targets[m[1]] = true
	}
	require.Contains(t, targets, "test")
	return targets
}

// usage is the exit code of quorate for a command line that makes no sense.
const usage = 2

func TestTheCommandQuorateUnderstandsWhatThePagesSay(t *testing.T) {
	program := filepath.Join(t.TempDir(), "quorate")
	out, err := exec.Command("go", "-C", Root, "build", "-o", program, "./cmd/quorate").CombinedOutput()
	require.NoError(t, err, "%s", out)
	fleet := redlocktest.Start(t, 3, redlocktest.WithTCP())
	nodes := "QUORATE_NODES=" + strings.Join(fleet.URLs(), ",")

	// It says so where a line makes no sense; else the test could not fail.
	for _, wrong := range [][]string{{"frobnicate"}, {"ls", "--frobnicate"}, {"show"}} {
		code, said := try(t, program, nodes, wrong)
		require.Equal(t, usage, code, "quorate %s: %s", strings.Join(wrong, " "), said)
	}
	blocks, err := AllBlocks(Root, "sh")
	require.NoError(t, err)
	found := 0
	for _, b := range blocks {
		commands, err := Commands(b)
		require.NoError(t, err)
		for _, c := range commands {
			if c.Args[0] != "quorate" || notChecked[c.String()] != "" {
				continue
			}
			found++
			code, said := try(t, program, nodes, c.Args[1:])
			assert.NotEqual(t, usage, code, "%s: %s: %s", c.At, c, said)
		}
	}
	require.Greater(t, found, 10, "the commands were not found")
}

// try runs a command line for a moment: one that goes on has been understood.
func try(t *testing.T, program, nodes string, args []string) (code int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), nodes)
	cmd.Dir = t.TempDir()
	cmd.WaitDelay = 5 * time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, exec.ErrWaitDelay) {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestALineIsReadAsAShellReadsIt(t *testing.T) {
	b := Block{Page: "a.md", Line: 7, Text: "cd x && X=1 make y Z=2   # why\n\n" +
		"quorate cron n \"0 2 * * *\" -- ./r \\\n\t--all\n"}
	commands, err := Commands(b)
	require.NoError(t, err)
	require.Equal(t, []Command{
		{"a.md:7", "x", []string{"make", "y", "Z=2"}},
		{"a.md:9", "x", []string{"quorate", "cron", "n", "0 2 * * *", "--", "./r", "--all"}},
	}, commands)
	for _, line := range []string{"a | b", "a; b", `a "b`, "a $(b)"} {
		_, err := Commands(Block{Text: line})
		require.Error(t, err, line)
	}
}

func TestThePageOnOperatingHasTheExitCodesOfTheCommand(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(Root, "cmd/quorate/exit.go"))
	require.NoError(t, err)
	codes := regexp.MustCompile(`(?m)^\t\{"([^"]+)", "([^"]+)"\},$`).FindAllStringSubmatch(string(source), -1)
	require.Greater(t, len(codes), 5, "the codes were not found")
	page := strings.ReplaceAll(strings.Join(pageLines(t, "docs/operating.md"), "\n"), "`", "")
	for _, code := range codes {
		assert.Contains(t, page, "\n| "+code[1]+" | "+code[2]+" |\n")
	}
}
