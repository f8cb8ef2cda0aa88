// Package rig is what the harnesses of client processes share: processes that are the harness's
// own binary, started again, and that end with it; a clock that all of them have in common; one
// that can be set; and a stand-in for a test, so that package redisserver serves outside of one.
package rig
