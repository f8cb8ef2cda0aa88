package redlocktest

import "time"

// Keys returns the names of the keys on node i that have not expired by its
// clock, sorted. Like the other methods that look inside, it works on a node
// that is stopped, hung or cut off as well, and sees database 0.
func (f *Fleet) Keys(i int) []string {
	return f.look(i).redis.Keys()
}

// Get returns the value of a string key on node i, and false if the key does not
// exist, has expired, or is not a string.
func (f *Fleet) Get(i int, key string) (string, bool) {
	value, err := f.look(i).redis.Get(key)
	return value, err == nil
}

// TTL returns what is left of a key on node i by the node's clock, and 0 if the
// key does not exist, has expired, or never expires.
func (f *Fleet) TTL(i int, key string) time.Duration {
	return f.look(i).redis.TTL(key)
}

// look returns the memory of a node, up to date.
func (f *Fleet) look(i int) *memory {
	n := f.node(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	n.memory.tick()
	return n.memory
}

// RunID returns the run ID of node i, 40 hexadecimal digits that differ at each
// start; it is empty while the node is stopped.
func (f *Fleet) RunID(i int) string {
	n := f.node(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.process == nil {
		return ""
	}
	return n.process.runID
}

// Commands returns how many commands node i has processed since the fleet was
// started, restarts included. A script counts as one command, whatever it calls.
// Those that go-redis sends when it connects count too.
func (f *Fleet) Commands(i int) int {
	return int(f.node(i).commands.Load())
}
