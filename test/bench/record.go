package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// A record is what the page is made of: the newest finding of each row.
type record struct {
	Machine  machine
	Versions []version
	Findings map[int]*finding
}

// loadRecord reads a record, without the rows of another machine: nothing says how its figures compare
// with those of this one.
func loadRecord(file string, here machine) (*record, error) {
	r := &record{}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read what was measured before: %w; or delete the file", err)
	}
	if r.Machine != here || r.Findings == nil {
		r.Findings = map[int]*finding{}
	}
	r.Machine = here
	return r, nil
}

func (r *record) save(file string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// inOrder are the findings, by their rows.
func (r *record) inOrder() []*finding {
	var all []*finding
	for _, n := range slices.Sorted(maps.Keys(r.Findings)) {
		all = append(all, r.Findings[n])
	}
	return all
}
