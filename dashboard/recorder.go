package dashboard

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
)

// maxRecorded is how many names a Recorder keeps.
const maxRecorded = 512

// A Recorder keeps the names that this process waited longest for, from what a Locker tells it:
//
//	recorder := dashboard.NewRecorder()
//	locker, err := redlock.New(nodes, redlock.WithObserver(recorder.Observe))
//	board, err := dashboard.New(locker, dashboard.WithContention(recorder))
//
// Its memory is bounded, whatever names it is told of: it is a Space-Saving sketch of 512 names, weighed
// by the time that was waited for them. When a name comes that it does not know, the one with the least weight
// goes, and the new one takes over its weight. So each name that was waited for longer than a 512th of all
// waiting is among them; a name that was forgotten and comes back begins anew. It is safe for
// use by many goroutines. Make it with NewRecorder.
type Recorder struct {
	mu    sync.Mutex
	names map[string]*recorded
	queue recordedQueue // the least weight first
}

type recorded struct {
	contention Contention
	weight     time.Duration // what was waited, and the weight that was taken over
	place      int           // in the queue
}

// Contention is what a Recorder knows of a name, since it first heard of it or since it last forgot it.
type Contention struct {
	Name     string
	Acquired int           // how often it was got
	Refused  int           // how often it was asked for in vain
	Wait     time.Duration // waited for it in all, in vain or not
	MaxWait  time.Duration // the longest
	Ended    int           // how many leases of it are over
	Held     time.Duration // how long these were held in all
	MaxHeld  time.Duration // the longest
	Last     time.Time     // when it was last asked for, by the local clock
}

// MeanWait is how long it was waited for on average, got or not.
func (c Contention) MeanWait() time.Duration { return mean(c.Wait, c.Acquired+c.Refused) }

// MeanHeld is how long a lease of it was held on average.
func (c Contention) MeanHeld() time.Duration { return mean(c.Held, c.Ended) }

func mean(sum time.Duration, n int) time.Duration {
	if n == 0 {
		return 0
	}
	return sum / time.Duration(n)
}

// NewRecorder makes a Recorder that knows of nothing.
func NewRecorder() *Recorder { return &Recorder{names: map[string]*recorded{}} }

// Observe takes note of an event. It is meant for redlock.WithObserver, and quick.
func (r *Recorder) Observe(e redlock.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.names[e.Name]
	switch e.Kind {
	case redlock.Ended:
		if n != nil {
			c := &n.contention
			c.Ended++
			c.Held += e.Held
			c.MaxHeld = max(c.MaxHeld, e.Held)
		}
		return
	case redlock.Acquired, redlock.Refused:
	default:
		return
	}
	if n == nil {
		n = r.admit(e.Name)
	}
	c := &n.contention
	if e.Kind == redlock.Acquired {
		c.Acquired++
	} else {
		c.Refused++
	}
	wait := max(e.Wait, 0)
	c.Wait += wait
	c.MaxWait = max(c.MaxWait, wait)
	c.Last = time.Now()
	n.weight += wait
	heap.Fix(&r.queue, n.place)
}

// admit makes room for a name, if there is none, by forgetting the one with the least weight.
func (r *Recorder) admit(name string) *recorded {
	if len(r.queue) < maxRecorded {
		n := &recorded{contention: Contention{Name: name}}
		r.names[name] = n
		heap.Push(&r.queue, n)
		return n
	}
	n := r.queue[0]
	delete(r.names, n.contention.Name)
	n.contention = Contention{Name: name} // and keeps the weight
	r.names[name] = n
	return n
}

// Top gives the n names that were waited longest for in all, the longest first.
func (r *Recorder) Top(n int) []Contention {
	r.mu.Lock()
	all := make([]Contention, 0, len(r.queue))
	for _, e := range r.queue {
		all = append(all, e.contention)
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b Contention) int {
		return cmp.Or(cmp.Compare(b.Wait, a.Wait), cmp.Compare(a.Name, b.Name))
	})
	return all[:max(0, min(n, len(all)))]
}

// A recordedQueue is a container/heap.
type recordedQueue []*recorded

func (q recordedQueue) Len() int           { return len(q) }
func (q recordedQueue) Less(i, j int) bool { return q[i].weight < q[j].weight }
func (q recordedQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}
func (q *recordedQueue) Push(x any) {
	n := x.(*recorded)
	n.place = len(*q)
	*q = append(*q, n)
}
func (q *recordedQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
