package deploy

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const (
	root     = "../.."
	confPath = "/etc/quorate/redis.conf"
	aclPath  = "/etc/quorate/users.acl"
)

// probe asks a node whether it answers. TestTheProbeTellsANodeThatAnswers runs it.
var probe = []string{"redis-cli", "-e", "--no-auth-warning", "--user", "probe", "--pass", "none", "ping"}

func TestMain(m *testing.M) {
	logging.Disable()
	goleak.VerifyTestMain(m)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(text)
}

// settings are the lines of a file that are not empty and no comments.
func settings(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// readConf is redis.conf, by setting.
func readConf(t *testing.T) map[string]string {
	t.Helper()
	conf := map[string]string{}
	for _, line := range settings(read(t, "deploy/redis/redis.conf")) {
		key, value, _ := strings.Cut(line, " ")
		require.NotContains(t, conf, key, "set twice")
		conf[key] = value
	}
	return conf
}

// maxMemory is the setting in bytes.
func maxMemory(t *testing.T, conf map[string]string) int64 {
	t.Helper()
	mb, found := strings.CutSuffix(conf["maxmemory"], "mb")
	require.True(t, found, "maxmemory in mb")
	n, err := strconv.ParseInt(mb, 10, 64)
	require.NoError(t, err)
	return n << 20
}

func TestNoSecretIsInTheFilesButThePlaceholder(t *testing.T) {
	for _, path := range []string{"deploy/redis/users.acl", "deploy/kubernetes/secret.yaml"} {
		for _, word := range strings.Fields(read(t, path)) {
			if password, ok := strings.CutPrefix(word, ">"); ok {
				assert.Equal(t, "change-me", password, path)
			}
		}
	}
}

func TestTheReadmeTellsOfEachFile(t *testing.T) {
	readme := read(t, "deploy/README.md")
	var missing []string
	err := filepath.WalkDir(filepath.Join(root, "deploy"), func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "README.md" && !strings.Contains(readme, d.Name()) {
			missing = append(missing, d.Name())
		}
		return err
	})
	require.NoError(t, err)
	require.Empty(t, missing)
}
