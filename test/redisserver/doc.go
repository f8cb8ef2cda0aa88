// Package redisserver starts real redis-servers for tests and does to them what happens to
// servers: it kills them, freezes them, restarts them with and without their data, sets their
// clocks, and cuts the links to them.
//
// Every server is a process of its own on a free loopback port, with a directory of its own
// and no persistence unless asked for. It ends with the test that started it, by its own
// process id, and it does not outlive the test binary, however that ends. When the test fails,
// the tail of the server's log goes to the test's log.
//
// A missing redis-server fails the test and is never a reason to skip it: a suite that skips
// what it cannot run proves nothing.
//
//	fleet := redisserver.StartFleet(t, 5)
//	clients := fleet.Clients()
//	fleet[2].Pause()   // hangs: connections stay open, nothing is answered
//	fleet[3].Restart() // kill -9, and back on the same port without its data
//
// [StartCluster] starts a Redis Cluster instead, of which slots can be moved.
//
// The package does not set out to run redis-server on Windows, which has none; there it only
// compiles.
package redisserver
