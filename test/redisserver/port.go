package redisserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports come from below the range out of which Linux (32768 up) and macOS (49152 up) take the
// source ports of outgoing connections. In that range, the port of a killed server could be
// taken by anyone's client before the server is back; and a client that redials the dead
// address can meet itself there, which TCP calls a simultaneous open.
const (
	firstPort = 12000
	lastPort  = 32000
)

var ports = struct {
	sync.Mutex
	taken map[int]bool
}{taken: map[int]bool{}}

// takePort reserves a free loopback port in this process until releasePort, so that a server
// which is down for a while finds its port again. Another process may still take it: whoever
// starts a server retries with another port, as long as nobody knows the first.
func takePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if ports.taken[port] {
			continue
		}
		probe, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		_ = probe.Close()
		ports.taken[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("no free loopback port among 200 tried between %d and %d: stop what listens there",
		firstPort, lastPort)
}

func releasePort(port int) {
	ports.Lock()
	defer ports.Unlock()
	delete(ports.taken, port)
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// errPortClash says that something else had the port when the server wanted it.
var errPortClash = errors.New("the port is taken by another process")
