package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/dashboard"
)

const dashboardAddress = "127.0.0.1:8090"

// boardFarewell is how long answers that are under way have when the command ends.
const boardFarewell = time.Second

func (c *console) dashboardCommand() *cli.Command {
	return &cli.Command{
		Name:        "dashboard",
		Usage:       "serve a live page of what the fleet does, until it is interrupted",
		Description: "The page is read-only unless a token for actions is given. It has no TLS and no users of its own: everybody who can connect sees names, holders and addresses. So it listens on this machine only, unless --allow-remote is given; let a proxy that knows your users stand before it, or mount package dashboard into a service of yours.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: dashboardAddress, Usage: "`ADDRESS` to listen on; port 0 is any that is free"},
			&cli.BoolFlag{Name: "allow-remote", Usage: "listen on an address that other machines can reach"},
			&cli.StringSliceFlag{Name: "host", Usage: "`NAME` that pages are asked for by, where others than that of --listen are refused; default: this machine's own, or any with --allow-remote"},
			&cli.StringFlag{Name: "actions-token-file", Usage: "`FILE` with the token of those who may pause and trigger jobs and break names; or the token itself in QUORATE_DASHBOARD_TOKEN; default: nobody may"},
		},
		Action: c.dashboard,
	}
}

func (c *console) dashboard(ctx context.Context, cmd *cli.Command) error {
	if err := noArguments(cmd); err != nil {
		return err
	}
	opts, err := c.boardOptions(cmd)
	if err != nil {
		return err
	}
	f, err := c.openForLooking(cmd)
	if err != nil {
		return err
	}
	defer f.close()
	board, err := dashboard.New(f.locker, opts...)
	if err != nil {
		return err
	}
	defer func() { _ = board.Close() }()
	listener, err := listenHere(cmd.String("listen"), cmd.Bool("allow-remote"))
	if err != nil {
		return err
	}
	c.say("the dashboard is at http://%s", listener.Addr())
	return serveBoard(ctx, listener, board)
}

// boardOptions are who may see the page by which name, and who may act.
func (c *console) boardOptions(cmd *cli.Command) ([]dashboard.Option, error) {
	opts := []dashboard.Option{dashboard.WithLogger(slog.New(slog.NewTextHandler(c.err, nil)))}
	switch hosts := cmd.StringSlice("host"); {
	case len(hosts) > 0:
		opts = append(opts, dashboard.WithHosts(hosts...))
	case !cmd.Bool("allow-remote"):
		opts = append(opts, dashboard.WithHosts(ownHosts...))
	}
	token := os.Getenv("QUORATE_DASHBOARD_TOKEN")
	if file := cmd.String("actions-token-file"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, usagef("--actions-token-file: %w", err)
		}
		token = strings.TrimSpace(string(text))
		if token == "" {
			return nil, usagef("--actions-token-file: %s is empty; openssl rand -hex 16 makes a token", file)
		}
	}
	if token != "" {
		opts = append(opts, dashboard.WithActions(token))
	}
	return opts, nil
}

// ownHosts are how a browser on this machine calls it. A site whose name was made to resolve to this machine calls
// it otherwise.
var ownHosts = []string{"localhost", "127.0.0.1", "::1", "[::1]"}

// listenHere listens on an address that only this machine can reach, unless others may.
func listenHere(address string, allowRemote bool) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, usagef("--listen %q: %w", address, err)
	}
	if !allowRemote && !resolved.IP.IsLoopback() { // no IP is all addresses
		return nil, usagef("--listen %q can be reached from other machines, and the dashboard has no TLS and no users of its own: listen on 127.0.0.1, or say --allow-remote if something before it keeps others out", address)
	}
	return net.ListenTCP("tcp", resolved)
}

// serveBoard serves until ctx ends. The board ends its streams when it is closed, so that nothing is waited for long.
func serveBoard(ctx context.Context, listener net.Listener, board *dashboard.Handler) error {
	server := &http.Server{Handler: board, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = board.Close()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), boardFarewell)
	defer cancel()
	if server.Shutdown(patience) != nil {
		_ = server.Close() // somebody hangs
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
