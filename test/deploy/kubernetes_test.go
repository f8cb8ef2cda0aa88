package deploy

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

const manifests = root + "/deploy/kubernetes"

// kinds are the types that the manifests may have.
var kinds = map[string]func() any{
	"v1 Namespace":                       func() any { return new(core.Namespace) },
	"v1 ConfigMap":                       func() any { return new(core.ConfigMap) },
	"v1 Secret":                          func() any { return new(core.Secret) },
	"v1 Service":                         func() any { return new(core.Service) },
	"apps/v1 StatefulSet":                func() any { return new(apps.StatefulSet) },
	"apps/v1 Deployment":                 func() any { return new(apps.Deployment) },
	"policy/v1 PodDisruptionBudget":      func() any { return new(policy.PodDisruptionBudget) },
	"networking.k8s.io/v1 NetworkPolicy": func() any { return new(networking.NetworkPolicy) },
}

type kustomization struct {
	meta.TypeMeta `json:",inline"`
	Namespace     string   `json:"namespace"`
	Resources     []string `json:"resources"`
}

// objects are those of one type in the manifests of the kustomization, by name. What no type has is an error.
func objects[T any](t *testing.T) map[string]*T {
	t.Helper()
	var k kustomization
	text, err := os.ReadFile(manifests + "/kustomization.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &k))
	found := map[string]*T{}
	for _, file := range k.Resources {
		text, err := os.ReadFile(manifests + "/" + file)
		require.NoError(t, err)
		for part := range strings.SplitSeq("\n"+string(text), "\n---\n") {
			part += "\n"
			if len(settings(part)) == 0 {
				continue
			}
			var head struct {
				meta.TypeMeta   `json:",inline"`
				meta.ObjectMeta `json:"metadata"`
			}
			require.NoError(t, yaml.Unmarshal([]byte(part), &head), file)
			kind := head.APIVersion + " " + head.Kind
			require.Contains(t, kinds, kind, file)
			object := kinds[kind]()
			require.NoError(t, yaml.UnmarshalStrict([]byte(part), object), "%s: %s", file, kind)
			if o, ok := object.(*T); ok {
				require.NotContains(t, found, head.Name, "there twice")
				found[head.Name] = o
			}
		}
	}
	return found
}

func TestEveryManifestIsPartOfTheKustomization(t *testing.T) {
	var k kustomization
	text, err := os.ReadFile(manifests + "/kustomization.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &k))
	assert.Equal(t, "quorate", k.Namespace)
	files, err := os.ReadDir(manifests)
	require.NoError(t, err)
	var found []string
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".yaml") && f.Name() != "kustomization.yaml" {
			found = append(found, f.Name())
		}
	}
	assert.ElementsMatch(t, found, k.Resources)
	assert.Contains(t, objects[core.Namespace](t), k.Namespace)
}

func TestThePodsHaveTheConfigurationThatTheTestsHaveRun(t *testing.T) {
	assert.Equal(t, read(t, "deploy/redis/redis.conf"), objects[core.ConfigMap](t)["quorate-redis"].Data["redis.conf"])
	assert.Equal(t, read(t, "deploy/redis/users.acl"), objects[core.Secret](t)["quorate-redis"].StringData["users.acl"])
}

func TestThereAreFiveSetsOfOneNode(t *testing.T) {
	sets, services := objects[apps.StatefulSet](t), objects[core.Service](t)
	require.Len(t, sets, 5)
	require.Len(t, services, 5)
	var addresses []string
	for i := range 5 {
		name := fmt.Sprintf("quorate-redis-%d", i+1)
		set, service := sets[name], services[name]
		require.NotNil(t, set, name)
		require.NotNil(t, service, name)
		addresses = append(addresses, "redis://quorate:change-me@"+name+":6379")

		assert.EqualValues(t, 1, *set.Spec.Replicas, name)
		assert.Equal(t, name, set.Spec.ServiceName)
		assert.Empty(t, set.Spec.VolumeClaimTemplates, "%s: nothing outlives a node", name)
		assert.Equal(t, apps.OnDeleteStatefulSetStrategyType, set.Spec.UpdateStrategy.Type, "%s: who applies all sets at once restarts them at once", name)
		pod := labels.Set(set.Spec.Template.Labels)
		assert.True(t, labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(pod), name)

		assert.Equal(t, core.ClusterIPNone, service.Spec.ClusterIP, name)
		assert.True(t, service.Spec.PublishNotReadyAddresses, name)
		for other, s := range sets {
			assert.Equal(t, other == name, labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(s.Spec.Template.Labels)), "%s and the pod of %s", name, other)
		}
		require.Len(t, service.Spec.Ports, 1, name)
		assert.Equal(t, set.Spec.Template.Spec.Containers[0].Ports[0].Name, service.Spec.Ports[0].TargetPort.String(), name)
	}
	assert.Equal(t, strings.Join(addresses, ","), objects[core.Secret](t)["quorate-nodes"].StringData["QUORATE_NODES"])
}

func TestNodesDoNotFailTogether(t *testing.T) {
	for name, set := range objects[apps.StatefulSet](t) {
		spec, pod := set.Spec.Template.Spec, labels.Set(set.Spec.Template.Labels)
		apart := spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		require.Len(t, apart, 1, name)
		assert.Equal(t, core.LabelHostname, apart[0].TopologyKey, name)
		assert.True(t, selects(t, apart[0].LabelSelector, pod), name)
		require.Len(t, spec.TopologySpreadConstraints, 1, name)
		spread := spec.TopologySpreadConstraints[0]
		assert.Equal(t, core.LabelTopologyZone, spread.TopologyKey, name)
		assert.Equal(t, core.DoNotSchedule, spread.WhenUnsatisfiable, name)
		assert.EqualValues(t, 1, spread.MaxSkew, name)
		require.NotNil(t, spread.NodeTaintsPolicy, name)
		assert.Equal(t, core.NodeInclusionPolicyHonor, *spread.NodeTaintsPolicy, "%s: a zone of tainted machines only would leave nodes pending", name)
		assert.True(t, selects(t, spread.LabelSelector, pod), name)

		budget := objects[policy.PodDisruptionBudget](t)["quorate-redis"]
		assert.True(t, selects(t, budget.Spec.Selector, pod), name)
		assert.Equal(t, 4, budget.Spec.MinAvailable.IntValue(), "of five, one at a time")
		assert.True(t, selects(t, &objects[networking.NetworkPolicy](t)["quorate-redis"].Spec.PodSelector, pod), name)
	}
}

func selects(t *testing.T, s *meta.LabelSelector, pod labels.Set) bool {
	t.Helper()
	selector, err := meta.LabelSelectorAsSelector(s)
	require.NoError(t, err)
	return selector.Matches(pod)
}

func TestANodeIsReadyWhenItsVotesCount(t *testing.T) {
	const most = redlock.DefaultMaxTTL + redlock.DefaultMaxTTL/100 + 2*time.Millisecond + time.Second // INFO cuts the uptime off to seconds
	for name, set := range objects[apps.StatefulSet](t) {
		c := set.Spec.Template.Spec.Containers[0]
		assert.Greater(t, time.Duration(c.ReadinessProbe.InitialDelaySeconds)*time.Second, most, name)
		assert.Equal(t, probe, c.ReadinessProbe.Exec.Command, name)
		assert.Equal(t, probe, c.LivenessProbe.Exec.Command, name)
	}
}

func TestPodsHaveNoRightsThatTheyDoNotNeed(t *testing.T) {
	pods := map[string]core.PodSpec{}
	for name, set := range objects[apps.StatefulSet](t) {
		pods[name] = set.Spec.Template.Spec
	}
	for name, d := range objects[apps.Deployment](t) {
		pods[name] = d.Spec.Template.Spec
	}
	require.Len(t, pods, 6)
	for name, pod := range pods {
		assert.False(t, *pod.AutomountServiceAccountToken, name)
		assert.True(t, *pod.SecurityContext.RunAsNonRoot, name)
		assert.NotZero(t, *pod.SecurityContext.RunAsUser, name)
		assert.Equal(t, core.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type, name)
		require.Len(t, pod.Containers, 1, name)
		c := pod.Containers[0]
		assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, name)
		assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation, name)
		assert.Equal(t, []core.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, name)
		assert.False(t, c.Resources.Limits.Memory().IsZero(), name)
		assert.False(t, c.Resources.Requests.Cpu().IsZero(), name)
	}
}

func TestTheNodesContainerReadsWhatIsMounted(t *testing.T) {
	for name, set := range objects[apps.StatefulSet](t) {
		pod := set.Spec.Template.Spec
		c := pod.Containers[0]
		assert.Equal(t, "redis-server "+confPath, strings.Join(c.Command, " "), name)
		assert.Equal(t, compose(t).Services["node1"].Image, c.Image, name)
		assert.Greater(t, c.Resources.Limits.Memory().Value(), maxMemory(t, readConf(t)), "%s: the limit has to be above maxmemory", name)
		volumes := map[string]core.Volume{}
		for _, v := range pod.Volumes {
			volumes[v.Name] = v
		}
		for _, m := range c.VolumeMounts {
			require.Contains(t, volumes, m.Name, name)
			if m.MountPath == "/etc/quorate" {
				sources := volumes[m.Name].Projected.Sources
				assert.Contains(t, objects[core.ConfigMap](t), sources[0].ConfigMap.Name, name)
				assert.Contains(t, objects[core.Secret](t), sources[1].Secret.Name, name)
			}
		}
	}
}

func TestTheLeaderExampleGivesItsLeaseBackAndIsRestartedWhenStuck(t *testing.T) {
	d := objects[apps.Deployment](t)["leader-example"]
	require.NotNil(t, d)
	pod, c := labels.Set(d.Spec.Template.Labels), d.Spec.Template.Spec.Containers[0]
	assert.True(t, selects(t, d.Spec.Selector, pod))
	assert.True(t, selects(t, objects[networking.NetworkPolicy](t)["quorate-redis"].Spec.Ingress[0].From[0].PodSelector, pod), "it may reach the nodes")
	grace := time.Duration(*d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	assert.Greater(t, grace, leader.DefaultTTL)
	assert.Greater(t, grace, leader.DefaultStopGrace)
	assert.Equal(t, "/healthz", c.LivenessProbe.HTTPGet.Path)
	assert.Equal(t, c.Ports[0].Name, c.LivenessProbe.HTTPGet.Port.String())
	assert.Contains(t, c.Args, fmt.Sprintf("-listen=:%d", c.Ports[0].ContainerPort))
	env := c.Env[0]
	assert.Contains(t, objects[core.Secret](t)[env.ValueFrom.SecretKeyRef.Name].StringData, env.ValueFrom.SecretKeyRef.Key)
}
