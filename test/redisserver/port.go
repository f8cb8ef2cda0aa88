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

// ports are those that are reserved, each by a UDP socket of that number. The kernel gives it to
// one process only, test binaries that run at the same time included, and takes it back when
// that ends, however it ends. Servers listen on TCP, which has numbers of its own.
var ports = struct {
	sync.Mutex
	taken map[int]net.PacketConn
}{taken: map[int]net.PacketConn{}}

// takePort reserves a free loopback port until releasePort, so that a server which is down for a
// while finds its port again. A process that knows nothing of reservations may still take it:
// whoever starts a server retries with another port, as long as nobody knows the first.
func takePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		reservation, err := net.ListenPacket("udp", loopback(port))
		if err != nil {
			continue
		}
		probe, err := net.Listen("tcp", loopback(port))
		if err != nil {
			_ = reservation.Close()
			continue
		}
		_ = probe.Close()
		ports.taken[port] = reservation
		return port, nil
	}
	return 0, fmt.Errorf("no free loopback port among 200 tried between %d and %d: stop what listens there",
		firstPort, lastPort)
}

func releasePort(port int) {
	ports.Lock()
	defer ports.Unlock()
	if reservation := ports.taken[port]; reservation != nil {
		_ = reservation.Close()
		delete(ports.taken, port)
	}
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// errPortClash says that something else had the port when the server wanted it.
var errPortClash = errors.New("the port is taken by another process")
