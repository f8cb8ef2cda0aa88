package fencing

import "sync"

// lines counts, for each resource, the callers of one guard that hold it or want it. The first of
// them is the one that asks the nodes, or holds; the others wait in line behind it.
type lines struct {
	mu      sync.Mutex
	callers map[string]int
}

func newLines() *lines { return &lines{callers: map[string]int{}} }

// enter joins the lines of all resources, or none where one of them is as long as the limit; 0 sets
// none. Whoever was let in must leave.
func (l *lines) enter(resources []string, limit int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range resources {
		if waiting := l.callers[r] - 1; limit > 0 && waiting >= limit {
			return &QueueError{Resource: r, Waiting: waiting, Limit: limit}
		}
	}
	for _, r := range resources {
		l.callers[r]++
	}
	return nil
}

func (l *lines) leave(resources []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range resources {
		if l.callers[r]--; l.callers[r] == 0 {
			delete(l.callers, r)
		}
	}
}
