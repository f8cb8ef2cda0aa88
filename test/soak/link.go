package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// holdToxic lets nothing through until it is taken away, and then all that has waited. The
// timeout toxic drops what arrives, so that a connection which outlives it has lost bytes from
// its middle; TCP never does that.
type holdToxic struct{}

// Pipe waits to be interrupted.
func (*holdToxic) Pipe(stub *toxics.ToxicStub) { <-stub.Interrupt }

func init() { toxics.Register("hold", new(holdToxic)) }

// link is the way of one client to one node. It outlives the processes at both ends.
type link struct {
	proxy *toxiproxy.Proxy

	mu sync.Mutex // toxics of one direction must not be stacked: a hold blocks those before it
}

var toxiproxyServer = sync.OnceValue(func() *toxiproxy.ApiServer {
	return toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
})

func newLink(name, node string) (*link, error) {
	p := toxiproxy.NewProxy(toxiproxyServer(), name, "127.0.0.1:0", node)
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("listen for a link to %s: %w", node, err)
	}
	return &link{proxy: p}, nil
}

func (l *link) addr() string { return l.proxy.Listen }

func (l *link) close() { l.proxy.Stop() }

// toxic is what a link suffers from, in toxiproxy's terms.
type toxic struct {
	kind       string
	stream     string // upstream, downstream or both
	attributes map[string]any
}

func (t toxic) streams() []string {
	if t.stream == "both" {
		return []string{"upstream", "downstream"}
	}
	return []string{t.stream}
}

// suffer adds the toxic, and heal takes it away.
func (l *link) suffer(t toxic) (heal func(), err error) {
	l.mu.Lock()
	for _, stream := range t.streams() {
		text, err := json.Marshal(map[string]any{
			"name": stream, "type": t.kind, "stream": stream, "attributes": t.attributes,
		})
		if err == nil {
			_, err = l.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
		}
		if err != nil {
			l.mu.Unlock()
			return nil, fmt.Errorf("make link %s suffer from %s: %w", l.proxy.Name, t.kind, err)
		}
	}
	return func() {
		defer l.mu.Unlock()
		for _, stream := range t.streams() {
			_ = l.proxy.Toxics.RemoveToxic(context.Background(), stream)
		}
	}, nil
}
