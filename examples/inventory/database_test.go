package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/internal/dbserver"
)

func TestWithoutPostgreSQLTheSaleIsOnSQLiteAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for says, err := range map[string]error{
		"install it":            fmt.Errorf("PostgreSQL is %w", dbserver.ErrNotInstalled),
		"by -database postgres": errors.New("no space left"),
	} {
		start := func() (*dbserver.Server, error) { return nil, err }
		d, note, end, e := findDatabase(t.Context(), "", "run", start)
		require.NoError(t, e)
		assert.Equal(t, fencing.SQLite, d.Dialect)
		assert.Contains(t, note, "SQLite")
		assert.Contains(t, note, says)
		end()

		_, _, _, e = findDatabase(t.Context(), "postgres", "run", start)
		require.ErrorIs(t, e, err, "who asks for it is told")
	}
}
