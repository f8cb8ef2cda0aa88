// Package real has the tests of package redlock that need real redis-servers: servers that are
// killed, frozen and restarted without their memory, links that are cut, TLS, users with few
// rights, and a Sentinel. There is nothing in it to import.
//
// A test that measures runs alone; the others run side by side, because most of their time they
// wait for a quarantine or a TTL to pass.
package real
