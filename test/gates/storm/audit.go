package main

import (
	"fmt"
	"slices"
)

// A book is what the parent knows of a run: the store's journal, and what the workers were told.
type book struct {
	initial int64
	shelves map[string]shelf
	entries []entry
	written []string // ids
	refused []event
}

// An account is what a run comes to.
type account struct {
	Writes    int
	Sold      int64 // units, by the journal
	Gone      int64 // units: what was there and was delivered, less what is left
	Lost      int   // writes that have not found what the one before them left
	Disorder  int   // writes after one with a higher token
	Negative  int   // writes that left less than nothing
	Missing   int   // writes that were confirmed and are not in the journal
	Ghosts    int   // writes that were refused, or are there twice
	Unfounded int   // refusals of a token that was not too old
	Wrong     []string
}

// enough of what is wrong of one kind, to be told.
const enough = 3

func (a *account) note(count *int, format string, args ...any) {
	if *count++; *count <= enough {
		a.Wrong = append(a.Wrong, fmt.Sprintf(format, args...))
	}
}

// audit checks a run that is over.
func audit(b book) account {
	a := account{Writes: len(b.entries)}
	left, highest := map[string]int64{}, map[string]int64{}
	ids := map[string]bool{}
	for sku := range b.shelves {
		left[sku] = b.initial
		a.Gone += b.initial
	}
	for _, e := range b.entries {
		if ids[e.ID] {
			a.note(&a.Ghosts, "sale %s is in the journal twice", e.ID)
		}
		ids[e.ID] = true
		if e.Left != left[e.SKU]-e.Units {
			a.note(&a.Lost, "%s: sale %s of %d units has left %d of %d", e.SKU, e.ID, e.Units, e.Left, left[e.SKU])
		}
		if e.Left < 0 {
			a.note(&a.Negative, "%s: sale %s has left %d", e.SKU, e.ID, e.Left)
		}
		if e.Token < highest[e.SKU] {
			a.note(&a.Disorder, "%s: sale %s with token %d came after token %d", e.SKU, e.ID, e.Token, highest[e.SKU])
		}
		left[e.SKU], highest[e.SKU] = e.Left, max(highest[e.SKU], e.Token)
		if e.Units > 0 {
			a.Sold += e.Units
		} else {
			a.Gone -= e.Units
		}
	}
	for sku, s := range b.shelves {
		a.Gone -= s.Left
		if s.Left != left[sku] {
			a.note(&a.Lost, "%s: %d are left, and the last sale has left %d", sku, s.Left, left[sku])
		}
	}
	for _, id := range b.written {
		if !ids[id] {
			a.note(&a.Missing, "sale %s was confirmed and is not in the journal", id)
		}
	}
	for _, e := range b.refused {
		if ids[e.ID] {
			a.note(&a.Ghosts, "sale %s was refused and is in the journal", e.ID)
		}
		if e.Seen <= e.Token {
			a.note(&a.Unfounded, "sale %s with token %d was refused for token %d", e.ID, e.Token, e.Seen)
		}
	}
	if a.Sold != a.Gone {
		a.Wrong = append(a.Wrong, fmt.Sprintf("%d units are sold and %d are gone", a.Sold, a.Gone))
	}
	slices.Sort(a.Wrong)
	return a
}

// balanced tells whether what is sold is gone, at any moment, and nothing is below zero.
func balanced(initial int64, shelves map[string]shelf) error {
	for sku, s := range shelves {
		if s.Left < 0 || s.Left != initial-s.Sold {
			return fmt.Errorf("%s: of %d units %d were sold, less those delivered, and %d are left", sku, initial, s.Sold, s.Left)
		}
	}
	return nil
}
