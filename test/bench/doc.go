// Bench measures this library and its peers side by side, on real redis-servers on loopback, and
// writes docs/performance.md.
//
//	go run . -rows 1,2,5 -for 2s -rounds 3 -out ../../docs/performance.md
//
// A figure of one machine says little on another, and on a busy machine little on the same. So
// what counts here are ratios: all that is compared is measured in turn within one run, round
// after round, and of each figure the median of the rounds is taken. Nothing here is a test: a
// test that asserts times fails for reasons of the machine. The test of this package sees only that
// every row can be measured and told.
//
// Every contender has its default options, and go-redis too, unless a row says otherwise. Fencing
// cannot be switched off, so what is measured of this library always includes it.
//
// What was measured is kept in a file (-cache), by row: a run of some rows leaves the others as they
// were, and -render writes the page again without measuring. Rows of another machine are thrown away.
//
// Rows that need client processes start this binary again, as package rig does.
package main
