package main

import (
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/test/rig"
)

// recorder writes a client's events. It is the only witness of what the client was told, so it
// writes at once and through to the pipe: a kill -9 a moment later takes nothing back.
type recorder struct {
	next atomic.Uint64

	mu sync.Mutex
	to io.Writer
}

func (r *recorder) write(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.At == 0 {
		e.At = rig.Stamp()
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and numbers: cannot be
	}
	// Where the harness is gone this process is about to end as well.
	_, _ = r.to.Write(append(line, '\n'))
}

// ask begins something new.
func (r *recorder) ask(load, name string) (id uint64) {
	id = r.next.Add(1)
	r.write(event{Kind: asked, ID: id, Load: load, Name: name})
	return id
}

func (r *recorder) refuse(id uint64, err error) {
	r.write(event{Kind: refused, ID: id, Err: class(err)})
}

// hold tells that something is held. The end of the validity is computed from a stamp that was
// taken before the holder was asked for it, so it is never later than the true one.
func (r *recorder) hold(kind kind, id uint64, token int64, until int64, value string) {
	r.write(event{Kind: kind, ID: id, Token: token, Until: until, Value: value})
}

func (r *recorder) end(id uint64, err error) {
	r.write(event{Kind: ended, ID: id, Err: class(err)})
}
