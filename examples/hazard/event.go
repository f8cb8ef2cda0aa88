package main

import (
	"encoding/json"
	"os"

	"github.com/quorate/quorate/redlock"
)

// An event is what a holder tells the parent, as one line of JSON on its standard output.
type event struct {
	Kind  kind
	Token redlock.Token `json:",omitzero"`
	Left  int           `json:",omitzero"` // units, as read or written
	Text  string        `json:",omitzero"`
}

type kind string

const (
	holds   kind = "holds"   // the lease; it has read that Left units are left
	looked  kind = "looked"  // at its lease, which is valid, and is about to write
	wrote   kind = "wrote"   // that Left units are left: the buyer is told that he has one
	refused kind = "refused" // the store did not take the write: the buyer is told to try again
	learned kind = "learned" // that its lease is over
)

func report(e event) error { return json.NewEncoder(os.Stdout).Encode(e) }
