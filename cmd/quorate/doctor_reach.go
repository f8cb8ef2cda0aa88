package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// unreachable says why a server does not answer, and what to do.
func unreachable(err error, timeout time.Duration) (found, advice string) {
	var (
		dns       *net.DNSError
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		wait      net.Error
	)
	switch {
	case err == nil:
		return "no server of it answers", "see that the cluster is formed: CLUSTER INFO"
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return fmt.Sprintf("the host %s is not known", dns.Name), "mend the name, or the DNS"
		}
		return fmt.Sprintf("the host %s cannot be looked up: %s", dns.Name, dns.Err), "look at the DNS"
	case errors.As(err, &record):
		return "it does not speak TLS", "write its URL as redis://, or have it speak TLS"
	case errors.As(err, &authority):
		return "its certificate is of an authority that is not known here", "name the authority with --tls-ca"
	case errors.As(err, &host):
		return fmt.Sprintf("its certificate is not for %s", host.Host), "use a name that the certificate has, or another certificate"
	case errors.As(err, &invalid):
		return "its certificate is not valid: " + invalid.Error(), "renew it, or look at this machine's clock"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there", "start the server, or mend host and port"
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return err.Error(), "mend the path of the socket, or its permissions"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &wait) && wait.Timeout():
		return fmt.Sprintf("does not answer within %s", timeout), "see whether it hangs or is overloaded, and whether a firewall is in between"
	}
	if found, advice, ok := refusal(err.Error()); ok {
		return found, advice
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "it hangs up at once", "see that it is a Redis server, and look at its log"
	}
	return err.Error(), "see that it is a Redis server"
}

// refusal knows what servers say.
func refusal(text string) (found, advice string, ok bool) {
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case has("WRONGPASS"), has("invalid password"):
		return "the user or the password is wrong", "mend them in its URL: redis://user:password@host", true
	case has("NOAUTH"):
		return "it wants a password", "write it in its URL: redis://user:password@host", true
	case has("without any password configured"):
		return "it has no password, and is given one", "take the password out of its URL, or set requirepass", true
	case has("NOPERM"):
		return "its user may not even connect: " + text, "give it the rights of docs/acl.md", true
	case has("LOADING"):
		return "it is loading its data", "wait, and try again", true
	case has("DENIED"):
		return "it is in protected mode, and talks to its own machine only", "give it a password and a bind address", true
	case has("max number of clients"):
		return "it has as many clients as it may have", "raise maxclients, or find who does not hang up", true
	case has("DB index"):
		return "it has no database of the number in its URL", "mend the number: most have 16, from 0, and a Redis Cluster has one", true
	case has("certificate required"), has("bad certificate"):
		return "it wants a client certificate, or another one", "name one that it knows with --tls-cert and --tls-key", true
	case has("HTTP/"), has("invalid reply"), has("can't parse"):
		return "it does not speak the Redis protocol: " + text, "mend host and port: another service listens there", true
	}
	return "", "", false
}

// mistaken tells of TLS where there is none, and of none where there is: a server answers neither in a way that
// tells. It sends no secrets.
func (p *patient) mistaken(ctx context.Context) (found, advice string, ok bool) {
	options := p.client.Options()
	if options.Network == "unix" {
		return "", "", false
	}
	ctx, cancel := p.ask(ctx)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, options.Network, options.Addr)
	if err != nil {
		return "", "", false
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(p.exam.timeout)); err != nil {
		return "", "", false
	}
	if options.TLSConfig == nil {
		// Nothing is said on this connection, so whose certificate it is does not matter.
		if tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) != nil {
			return "", "", false
		}
		return "it speaks TLS", "write its URL as rediss://", true
	}
	if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return "", "", false
	}
	reply := make([]byte, 1)
	if _, err := io.ReadFull(conn, reply); err != nil || reply[0] != '+' && reply[0] != '-' {
		return "", "", false
	}
	return "it does not speak TLS", "write its URL as redis://, or have it speak TLS", true
}
