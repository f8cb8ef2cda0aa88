// Package gates tests the gates of package fencing on real databases: PostgreSQL, MariaDB and SQLite.
// It is a module of its own, so that the drivers are nobody's dependencies but its own. The servers are
// started by the tests, as an ordinary user, on loopback ports, with their data in a temporary directory.
package gates
