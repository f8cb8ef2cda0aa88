package main

import (
	"sync"
	"time"
)

// lockWaits counts those who wait for a lock of the database: for PostgreSQL by samples, for SQLite
// each transaction from its wish to begin until it has.
type lockWaits struct {
	mu      sync.Mutex
	now     int
	most    int
	waited  time.Duration
	samples int
	total   int // of all samples
}

func (w *lockWaits) sample(waiting int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples++
	w.total += waiting
	w.most = max(w.most, waiting)
}

func (w *lockWaits) begin() (begun func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := time.Now()
	w.now++
	w.most = max(w.most, w.now)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.now--
		w.waited += time.Since(since)
	}
}

// sum is how long all together have waited, and how many at most at one moment.
func (w *lockWaits) sum() (waited time.Duration, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waited, w.most
}

// mean is how many waited on average, by the samples.
func (w *lockWaits) mean() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.samples == 0 {
		return 0
	}
	return float64(w.total) / float64(w.samples)
}
