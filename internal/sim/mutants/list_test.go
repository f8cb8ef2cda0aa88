package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryMutantFindsItsText(t *testing.T) {
	t.Chdir("../../..")
	names := map[string]bool{}
	for _, m := range mutants {
		_, err := m.overlay(t.TempDir())
		require.NoError(t, err, m.name)
		require.NotEqual(t, m.old, m.new, m.name)
		require.False(t, names[m.name], "two mutants are called %q", m.name)
		names[m.name] = true
	}
}

func TestAMutantWhoseTextIsGoneIsAnError(t *testing.T) {
	t.Chdir("../../..")
	_, err := mutant{name: "gone", file: acquireGo, old: "no such text"}.overlay(t.TempDir())
	require.ErrorContains(t, err, "bring the list of mutants up to date")
}

func TestEveryMutantHasItsRow(t *testing.T) {
	t.Chdir("../../..")
	page, err := os.ReadFile("docs/mutants.md")
	require.NoError(t, err)
	for _, m := range mutants {
		require.Contains(t, string(page), "\n| "+m.name+" | `"+m.file+"` |", "run: go run ./internal/sim/mutants -page docs/mutants.md -only %q", "^"+m.name+"$")
	}
}
