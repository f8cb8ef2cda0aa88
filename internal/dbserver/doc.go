// Package dbserver starts a PostgreSQL or a MariaDB of its own for tests and examples: as an ordinary
// user, on a loopback port, without passwords, with its data in a temporary directory that goes when
// the server does. Nothing that is written survives it, and nothing is synced to the disk.
//
// It imports no driver: who uses a server brings one. A server ends with the process that started it,
// whatever that dies of; only on Windows it has to be stopped.
package dbserver
