package deploy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func compose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{root + "/deploy/compose.yaml"}, cli.WithConsistency(true), cli.WithInterpolation(true))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

func TestTheComposeFileIsFiveNodesThatOnlyThisMachineReaches(t *testing.T) {
	project := compose(t)
	require.Len(t, project.Services, 5)
	ports := map[string]bool{}
	for name, s := range project.Services {
		require.Len(t, s.Ports, 1, name)
		assert.Equal(t, "127.0.0.1", s.Ports[0].HostIP, name)
		assert.EqualValues(t, 6379, s.Ports[0].Target, name)
		assert.False(t, ports[s.Ports[0].Published], "two nodes on port %s", s.Ports[0].Published)
		ports[s.Ports[0].Published] = true

		assert.Regexp(t, `^redis:\d+\.\d+\.\d+-`, s.Image, "a version that does not move")
		assert.Equal(t, "unless-stopped", s.Restart, name)
		assert.Empty(t, s.Volumes, "%s: nothing outlives a node", name)
		assert.Equal(t, "redis", s.User, name)
		assert.True(t, s.ReadOnly, name)
		assert.Equal(t, []string{"ALL"}, s.CapDrop, name)
		assert.NotZero(t, s.Deploy.Resources.Limits.MemoryBytes, name)
		assert.Greater(t, int64(s.Deploy.Resources.Limits.MemoryBytes), maxMemory(t, readConf(t)), "%s: the limit has to be above maxmemory", name)
	}
}

func TestTheComposeFileMountsWhatTheNodesAreToldToRead(t *testing.T) {
	project := compose(t)
	for name, s := range project.Services {
		mounted := map[string]string{} // path in the container: file
		for _, c := range s.Configs {
			mounted[c.Target] = project.Configs[c.Source].File
		}
		want := map[string]string{confPath: "redis.conf", aclPath: "users.acl"}
		require.Len(t, mounted, len(want), name)
		for target, file := range want {
			at, err := filepath.EvalSymlinks(mounted[target])
			require.NoError(t, err, name)
			wanted, err := filepath.Abs(filepath.Join(root, "deploy/redis", file))
			require.NoError(t, err)
			wanted, err = filepath.EvalSymlinks(wanted)
			require.NoError(t, err)
			assert.Equal(t, wanted, at, name)
		}
		assert.Equal(t, "redis-server "+confPath, strings.Join(s.Command, " "), name)
		require.Equal(t, "CMD", s.HealthCheck.Test[0], name)
		assert.Equal(t, probe, []string(s.HealthCheck.Test[1:]), name)
	}
}
