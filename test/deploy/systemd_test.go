package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

var units = []string{"quorate-redis@.service", "billing.service"}

// known are the settings of units that these may have, by section: as in systemd.unit(5), systemd.service(5),
// systemd.exec(5), systemd.kill(5) and systemd.resource-control(5).
var known = map[string][]string{
	"Unit": {"Description", "Documentation", "After", "Wants", "StartLimitIntervalSec"},
	"Service": {
		"Type", "EnvironmentFile", "ExecStart", "User", "Group", "DynamicUser", "RuntimeDirectory", "RuntimeDirectoryMode",
		"Restart", "RestartSec", "TimeoutStopSec", "KillMode", "LimitNOFILE", "MemoryMax", "OOMScoreAdjust",
		"CapabilityBoundingSet", "NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectClock",
		"ProtectControlGroups", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables",
		"ProtectProc", "ProcSubset", "RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID",
		"LockPersonality", "MemoryDenyWriteExecute", "RemoveIPC", "SystemCallArchitectures", "SystemCallFilter",
		"SystemCallErrorNumber", "UMask",
	},
	"Install": {"WantedBy"},
}

// parseUnit gives the settings of a unit by section.
func parseUnit(t *testing.T, name string) map[string]map[string][]string {
	t.Helper()
	unit := map[string]map[string][]string{}
	section := ""
	for _, line := range settings(read(t, "deploy/systemd/"+name)) {
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			require.Contains(t, known, section, name)
			require.NotContains(t, unit, section, name)
			unit[section] = map[string][]string{}
			continue
		}
		key, value, found := strings.Cut(line, "=")
		require.True(t, found, "%s: no setting: %s", name, line)
		require.Contains(t, known[section], key, "%s: [%s]", name, section)
		unit[section][key] = append(unit[section][key], value)
	}
	return unit
}

func TestUnitsHaveSettingsThatExistAndRestart(t *testing.T) {
	for _, name := range units {
		unit := parseUnit(t, name)
		service := unit["Service"]
		require.Len(t, service["ExecStart"], 1, name)
		assert.True(t, strings.HasPrefix(service["ExecStart"][0], "/"), "%s: systemd wants a full path", name)
		assert.Equal(t, []string{"always"}, service["Restart"], name)
		assert.Equal(t, []string{"0"}, unit["Unit"]["StartLimitIntervalSec"], "%s: five ends in ten seconds would be the last", name)
		assert.Equal(t, []string{"multi-user.target"}, unit["Install"]["WantedBy"], name)
		for _, key := range []string{"NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectKernelModules"} {
			assert.Equal(t, []string{"yes"}, service[key], "%s: %s", name, key)
		}
	}
}

func TestSystemdItselfHasNothingToSayAgainstTheUnits(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("there is no systemd-analyze here: the units are checked against the list of settings only")
		return
	}
	dir := t.TempDir()
	for _, name := range units {
		text := read(t, "deploy/systemd/"+name)
		// It wants the program to be there, which is installed elsewhere or not at all.
		program := strings.Fields(parseUnit(t, name)["Service"]["ExecStart"][0])[0]
		text = strings.ReplaceAll(text, "ExecStart="+program, "ExecStart=/bin/true")
		file := filepath.Join(dir, strings.Replace(name, "@.", "@6379.", 1))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		out, err := exec.CommandContext(t.Context(), tool, "verify", "--man=no", file).CombinedOutput()
		require.NoError(t, err, "%s:\n%s", name, out)
		assert.Empty(t, string(out), name)
	}
}

func TestAReplicaHasTimeToGiveItsLeaseBack(t *testing.T) {
	service := parseUnit(t, "billing.service")["Service"]
	patience, err := time.ParseDuration(service["TimeoutStopSec"][0])
	require.NoError(t, err)
	assert.Greater(t, patience, leader.DefaultStopGrace)
	assert.Greater(t, patience, redlock.DefaultMaxTTL)
	assert.Equal(t, []string{"mixed"}, service["KillMode"], "quorate is told to stop, and tells the program")
	command := strings.Fields(service["ExecStart"][0])
	assert.Equal(t, []string{"/usr/local/bin/quorate", "lead", "billing", "--", "/usr/local/bin/billing"}, command)
	assert.NotContains(t, service["ExecStart"][0], "://", "URLs with passwords are not for the command line")
}

func TestANodesUnitUsesTheSameFilesOnThePortOfItsName(t *testing.T) {
	service := parseUnit(t, "quorate-redis@.service")["Service"]
	command := strings.Fields(service["ExecStart"][0])
	assert.Equal(t, confPath, command[1])
	at := slices.Index(command, "--port")
	require.Positive(t, at)
	assert.Equal(t, "%i", command[at+1])
	assert.Contains(t, command, "${QUORATE_BIND}")
}

// As root would, but for where: on a machine that has no directory of quorate's yet.
func TestTheUnitsAreInstalledAsTheySay(t *testing.T) {
	for _, name := range units {
		unit := read(t, "deploy/systemd/"+name)
		comment, _, _ := strings.Cut(unit, "[Unit]")
		var script strings.Builder
		for line := range strings.Lines(comment) {
			if command, ok := strings.CutPrefix(line, "#   "); ok && !strings.HasPrefix(command, "systemctl ") {
				script.WriteString(command)
			}
		}
		etc := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(etc, "systemd/system"), 0o755)) // systemd's own
		// There need be no group redis here.
		commands := strings.NewReplacer("/etc/", etc+"/", "-g redis ", "").Replace(script.String())
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", commands)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s:\n%s\n%s", name, commands, out)
		installed, err := os.ReadFile(filepath.Join(etc, "systemd/system", name))
		require.NoError(t, err)
		assert.Equal(t, unit, string(installed))
		for _, file := range parseUnit(t, name)["Service"]["EnvironmentFile"] {
			assert.FileExists(t, strings.Replace(file, "/etc", etc, 1))
		}
		if name != "billing.service" {
			for _, file := range []string{confPath, aclPath} {
				assert.FileExists(t, strings.Replace(file, "/etc", etc, 1))
			}
		}
	}
}
