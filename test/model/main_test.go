package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheProtocolHoldsItsPromisesAndItsMutantsDoNot(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "model.md"))
	require.NoError(t, err)
	var told bytes.Buffer
	r, err := suite(t.Context(), &told, t.TempDir(), true)
	t.Log("\n" + told.String())
	require.NoError(t, err)
	require.NoError(t, r.failure())
	for _, set := range [][]result{r.searches, r.mutants} {
		for i := range set {
			assert.Contains(t, string(page), set[i].row(), "docs/model.md is not of this model: run make model")
		}
	}
}

func TestEveryMutantOfTheModelsIsTried(t *testing.T) {
	tried := map[string]bool{}
	for _, m := range mutants {
		tried[m.flag] = true
	}
	for _, name := range []string{lease, clock} {
		text, err := models.ReadFile(name)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "MUTANT") || !strings.HasPrefix(line, "#") {
				continue
			}
			for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') }) {
				if strings.Contains(word, "_") {
					assert.True(t, tried[word], "%s: nobody tries the mutant %s", name, word)
				}
			}
		}
	}
}

func TestASearchThatIsCutOffIsNoProof(t *testing.T) {
	cut := method{exhaustive.compile, []string{"-m20"}}
	_, err := check(t.Context(), t.TempDir(), find("delays"), cut)
	require.ErrorContains(t, err, "max search depth too small")
}
