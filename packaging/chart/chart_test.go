package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const chartDir = "../../charts/freshet"

// configurations are installations that people make, as values in YAML.
var configurations = map[string]string{
	"defaults":   ``,
	"production": `{environment: production, secrets: {existingSecret: s}}`,
	"single with everything": `
host: freshet.test
subscriberHost: live.freshet.test
tls: {enabled: true, secretName: own-tls}
environment: production
secrets: {existingSecret: s}
settings: {signup: admin, publish: {max_body: 8MiB}}
ingress: {enabled: true, className: nginx, annotations: {a: b}}
metrics: {enabled: true, serviceMonitor: {enabled: true, labels: {release: prometheus}}, from: [{namespaceSelector: {matchLabels: {name: monitoring}}}]}
persistence: {storageClass: fast, size: 20Gi}
image: {digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123"}
imagePullSecrets: [{name: pull}]
podAnnotations: {a: b}
podLabels: {team: data}
nodeSelector: {disk: ssd}
tolerations: [{key: k, operator: Exists}]
priorityClassName: high
extraEnv: [{name: TZ, value: Europe/Paris}]
`,
	"without a volume":          `{persistence: {enabled: false}}`,
	"tls in the pods":           `{tls: {enabled: true, termination: pod}, service: {type: LoadBalancer}}`,
	"cluster, embedded NATS":    `{mode: cluster, secrets: {existingSecret: s}}`,
	"cluster in production":     `{mode: cluster, environment: production, secrets: {existingSecret: s}, tls: {enabled: true}, ingress: {enabled: true}, cluster: {replicas: 5}}`,
	"cluster, external NATS":    `{mode: cluster, cluster: {nats: external}, secrets: {existingSecret: s}}`,
	"cluster with metrics":      `{mode: cluster, secrets: {existingSecret: s}, metrics: {enabled: true, serviceMonitor: {enabled: true}}, settings: {subscriber: {public_url: "https://x.test"}}, ingress: {enabled: true}}`,
	"cluster, split and scaled": `{mode: cluster, environment: production, cluster: {nats: external, split: true}, autoscaling: {enabled: true}, secrets: {existingSecret: s}, metrics: {enabled: true}}`,
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render returns the objects of an installation by kind and name, or why there is none.
func render(t *testing.T, values string) (objects, error) {
	t.Helper()
	c := load(t)
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "freshet", Namespace: "live", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	found := objects{}
	for name, text := range files {
		if path.Ext(name) == ".yaml" {
			for _, document := range regexp.MustCompile(`(?m)^---\s*$`).Split(text, -1) {
				found.decode(t, name, document)
			}
		} else if strings.HasSuffix(name, "NOTES.txt") {
			found["NOTES"] = text
		}
	}
	return found, nil
}

// objects are by kind/name.
type objects map[string]any

// serviceMonitor is the part of the Prometheus operator's type that the chart uses.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`

			Authorization *struct {
				Credentials corev1.SecretKeySelector `json:"credentials"`
			} `json:"authorization"`
		} `json:"endpoints"`
	} `json:"spec"`
}

var kinds = map[string]func() any{
	"apps/v1/StatefulSet":                     func() any { return &appsv1.StatefulSet{} },
	"apps/v1/Deployment":                      func() any { return &appsv1.Deployment{} },
	"autoscaling/v2/HorizontalPodAutoscaler":  func() any { return &autoscalingv2.HorizontalPodAutoscaler{} },
	"v1/Service":                              func() any { return &corev1.Service{} },
	"v1/ServiceAccount":                       func() any { return &corev1.ServiceAccount{} },
	"v1/ConfigMap":                            func() any { return &corev1.ConfigMap{} },
	"networking.k8s.io/v1/Ingress":            func() any { return &networkingv1.Ingress{} },
	"networking.k8s.io/v1/NetworkPolicy":      func() any { return &networkingv1.NetworkPolicy{} },
	"policy/v1/PodDisruptionBudget":           func() any { return &policyv1.PodDisruptionBudget{} },
	"monitoring.coreos.com/v1/ServiceMonitor": func() any { return &serviceMonitor{} },
}

// decode is strict: a field that Kubernetes does not know, or one given twice, is a mistake.
func (o objects) decode(t *testing.T, file, document string) {
	t.Helper()
	if strings.TrimSpace(document) == "" {
		return
	}
	var head struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := yaml.Unmarshal([]byte(document), &head); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, document)
	}
	make, ok := kinds[head.APIVersion+"/"+head.Kind]
	if !ok {
		t.Fatalf("%s: %s %s is a kind that no test knows", file, head.APIVersion, head.Kind)
	}
	object := make()
	if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
		t.Fatalf("%s: %s %s: %v\n%s", file, head.Kind, head.Name, err, document)
	}
	if _, twice := o[head.Kind+"/"+head.Name]; twice {
		t.Errorf("%s %s is there twice", head.Kind, head.Name)
	}
	o[head.Kind+"/"+head.Name] = object
}

// workload is what StatefulSets and Deployments have in common.
type workload struct {
	name     string
	replicas int32 // the most there will be
	pod      corev1.PodTemplateSpec
	selector *metav1.LabelSelector
	claims   []corev1.PersistentVolumeClaim
}

func (o objects) workloads() []workload {
	var all []workload
	for _, object := range o {
		switch w := object.(type) {
		case *appsv1.StatefulSet:
			all = append(all, workload{w.Name, *w.Spec.Replicas, w.Spec.Template, w.Spec.Selector, w.Spec.VolumeClaimTemplates})
		case *appsv1.Deployment:
			n := int32(1)
			if w.Spec.Replicas != nil {
				n = *w.Spec.Replicas
			} else if scaler, ok := o["HorizontalPodAutoscaler/"+w.Name].(*autoscalingv2.HorizontalPodAutoscaler); ok {
				n = *scaler.Spec.MinReplicas
			}
			all = append(all, workload{w.Name, n, w.Spec.Template, w.Spec.Selector, nil})
		}
	}
	return all
}

func (w workload) env() map[string]corev1.EnvVar {
	all := map[string]corev1.EnvVar{}
	for _, e := range w.pod.Spec.Containers[0].Env {
		all[e.Name] = e
	}
	return all
}

func forEach(t *testing.T, check func(t *testing.T, o objects)) {
	for name, values := range configurations {
		t.Run(name, func(t *testing.T) {
			o, err := render(t, values)
			if err != nil {
				t.Fatal(err)
			}
			check(t, o)
		})
	}
}

func TestTheChartPassesLint(t *testing.T) {
	for name, values := range configurations {
		given, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.AllWithKubeVersion(chartDir, given, "live", nil).Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

func TestEveryPodIsRestricted(t *testing.T) {
	forEach(t, func(t *testing.T, o objects) {
		if len(o.workloads()) == 0 {
			t.Fatal("nothing runs")
		}
		for _, w := range o.workloads() {
			spec, c := w.pod.Spec, w.pod.Spec.Containers[0]
			if s := spec.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser != 65532 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("pod: %+v", s)
			}
			if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || s.Capabilities.Add != nil {
				t.Errorf("container: %+v", s)
			}
			if *spec.AutomountServiceAccountToken || *spec.EnableServiceLinks || spec.HostNetwork || spec.HostPID {
				t.Errorf("the pod is given more than it needs")
			}
		}
	})
}

func TestPodsAreProbedAndMayFinish(t *testing.T) {
	forEach(t, func(t *testing.T, o objects) {
		for _, w := range o.workloads() {
			c := w.pod.Spec.Containers[0]
			for name, p := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
				if p == nil || p.Exec == nil || !slices.Equal(p.Exec.Command[:2], []string{"/bin/freshet", "healthcheck"}) {
					t.Fatalf("%s probe: %+v", name, p)
				}
				// A database that is away must take a pod out of service, not kill it.
				if alive := slices.Contains(p.Exec.Command, "--live"); alive == (name == "readiness") {
					t.Errorf("%s probe asks %q", name, p.Exec.Command)
				}
				if p.TimeoutSeconds <= 3 {
					t.Errorf("%s probe gives up after %d s, before the command itself does", name, p.TimeoutSeconds)
				}
			}
			var drain int64
			if _, err := fmt.Sscanf(w.env()["FRESHET_DRAIN_TIMEOUT"].Value, "%ds", &drain); err != nil {
				t.Fatal(err)
			}
			wait := c.Lifecycle.PreStop.Sleep.Seconds
			if grace := *w.pod.Spec.TerminationGracePeriodSeconds; wait < 1 || grace < drain+wait+10 {
				t.Errorf("grace %d s for a wait of %d s, a drain of %d s and closing", grace, wait, drain)
			}
		}
	})
}

func TestSelectorsFindTheirPods(t *testing.T) {
	forEach(t, func(t *testing.T, o objects) {
		matches := func(selector map[string]string) (pods []workload) {
			for _, w := range o.workloads() {
				if contains(w.pod.Labels, selector) {
					pods = append(pods, w)
				}
			}
			return pods
		}
		for name, object := range o {
			switch x := object.(type) {
			case *corev1.Service:
				pods := matches(x.Spec.Selector)
				if len(pods) == 0 {
					t.Errorf("%s finds no pod", name)
				}
				for _, w := range pods {
					for _, p := range x.Spec.Ports {
						if p.TargetPort.StrVal != "" && !slices.ContainsFunc(w.pod.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.Name == p.TargetPort.StrVal }) {
							t.Errorf("%s: %s has no port %s", name, w.name, p.TargetPort.StrVal)
						}
					}
				}
			case *policyv1.PodDisruptionBudget:
				if pods := matches(x.Spec.Selector.MatchLabels); len(pods) != 1 {
					t.Errorf("%s is about %d workloads", name, len(pods))
				}
			case *networkingv1.NetworkPolicy:
				if pods := matches(x.Spec.PodSelector.MatchLabels); len(pods) != len(o.workloads()) {
					t.Errorf("%s protects %d of %d workloads", name, len(pods), len(o.workloads()))
				}
			case *networkingv1.Ingress:
				backend := x.Spec.Rules[0].HTTP.Paths[0].Backend.Service
				s, ok := o["Service/"+backend.Name].(*corev1.Service)
				if !ok || s.Spec.Ports[0].Name != backend.Port.Name {
					t.Errorf("%s leads to %+v", name, backend)
				}
			case *serviceMonitor:
				if s, ok := o["Service/freshet-metrics"].(*corev1.Service); !ok || !contains(s.Labels, x.Spec.Selector.MatchLabels) || s.Spec.Ports[0].Name != x.Spec.Endpoints[0].Port {
					t.Errorf("%s finds no service", name)
				}
				sent, asked := x.Spec.Endpoints[0].Authorization, o.workloads()[0].env()["FRESHET_ADMIN_TOKEN"].ValueFrom
				if (sent != nil) != (asked != nil) || sent != nil && (sent.Credentials.Name != asked.SecretKeyRef.Name || sent.Credentials.Key != asked.SecretKeyRef.Key) {
					t.Errorf("%s sends %+v, and the pods ask for %+v", name, sent, asked)
				}
			}
		}
		for _, w := range o.workloads() {
			if !contains(w.pod.Labels, w.selector.MatchLabels) {
				t.Errorf("%s does not select its own pods", w.name)
			}
		}
	})
}

func contains(labels, wanted map[string]string) bool {
	for k, v := range wanted {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func TestVolumesAreMountedAndMountsHaveVolumes(t *testing.T) {
	forEach(t, func(t *testing.T, o objects) {
		for _, w := range o.workloads() {
			volumes := map[string]bool{}
			for _, v := range w.pod.Spec.Volumes {
				volumes[v.Name] = true
			}
			for _, c := range w.claims {
				volumes[c.Name] = true
			}
			for _, m := range w.pod.Spec.Containers[0].VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("%s has no volume for its mount %s", w.name, m.Name)
				}
				delete(volumes, m.Name)
			}
			if len(volumes) > 0 {
				t.Errorf("%s does not mount %v", w.name, volumes)
			}
		}
	})
}

// TestEverySettingExists keeps the chart from setting what the program would refuse.
func TestEverySettingExists(t *testing.T) {
	reference, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	forEach(t, func(t *testing.T, o objects) {
		for _, w := range o.workloads() {
			for name := range w.env() {
				known := name == "FRESHET_CONFIG" || bytes.Contains(reference, []byte("`"+name+"`"))
				if strings.HasPrefix(name, "FRESHET_") && !known {
					t.Errorf("%s is no setting", name)
				}
			}
		}
	})
}

// secretValues are good ones for every variable that comes from a Secret.
var secretValues = map[string]string{
	"FRESHET_ADMIN_PASSWORD": "a password of one's own", "FRESHET_ADMIN_TOKEN": "0123456789abcdef0123456789abcdef",
	"FRESHET_DATABASE": "postgres://u:p@h/d", "FRESHET_NATS": "nats://u:p@h:4222", "FRESHET_NATS_SECRET": "0123456789abcdef",
	"FRESHET_TOKEN_SECRET": "", "FRESHET_TOKEN_PREVIOUS_SECRET": "", "FRESHET_ACTIVATION_KEY": "", // optional, and not there
}

// TestTheProgramStartsWithWhatTheChartGives as far as its settings go.
func TestTheProgramStartsWithWhatTheChartGives(t *testing.T) {
	file := filepath.Join(t.TempDir(), "freshet")
	if out, err := exec.Command("go", "-C", "../..", "build", "-o", file, "./cmd/freshet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	forEach(t, func(t *testing.T, o objects) {
		for _, w := range o.workloads() {
			cmd := exec.Command(file, "config", "check")
			for name, e := range w.env() {
				value := e.Value
				switch {
				case name == "FRESHET_CONFIG":
					value = filepath.Join(t.TempDir(), "freshet.yaml")
					if err := os.WriteFile(value, []byte(o["ConfigMap/freshet"].(*corev1.ConfigMap).Data["freshet.yaml"]), 0o600); err != nil {
						t.Fatal(err)
					}
				case e.ValueFrom != nil:
					good, known := secretValues[name]
					if !known {
						t.Errorf("%s comes from a Secret, and nobody knows what it is", name)
					}
					value = good
				}
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", w.name, err, out)
			}
		}
	})
}

func TestTheDefaultIsOneNodeWithItsVolume(t *testing.T) {
	o, err := render(t, "")
	if err != nil {
		t.Fatal(err)
	}
	w := o.workloads()[0]
	if len(o.workloads()) != 1 || w.replicas != 1 || len(w.claims) != 1 || w.env()["FRESHET_NATS"].Name != "" {
		t.Errorf("got %+v", o.workloads())
	}
	for kind := range o {
		if strings.HasPrefix(kind, "Ingress") || strings.HasPrefix(kind, "PodDisruptionBudget") || strings.HasPrefix(kind, "ServiceMonitor") {
			t.Errorf("%s is there unasked", kind)
		}
	}
	// It asks for no password, so it is not to be had from outside the pod.
	if w.env()["FRESHET_ADMIN_LISTEN"].Name != "" || o["Service/freshet-metrics"] != nil {
		t.Error("the administration listener is open")
	}
	for _, want := range []string{"a single node", "freshet-admin", "beta edition", "TLS is off", "port-forward service/freshet-gateway"} {
		if !strings.Contains(o["NOTES"].(string), want) {
			t.Errorf("the notes do not say %q:\n%s", want, o["NOTES"])
		}
	}
}

func TestAClusterFitsIntoSixCPUsAndSevenGigabytes(t *testing.T) {
	for _, name := range []string{"cluster, embedded NATS", "cluster, external NATS"} {
		o, err := render(t, configurations[name])
		if err != nil {
			t.Fatal(err)
		}
		var cpu, memory, limit resource.Quantity
		for _, w := range o.workloads() {
			for range w.replicas {
				r := w.pod.Spec.Containers[0].Resources
				cpu.Add(*r.Requests.Cpu())
				memory.Add(*r.Requests.Memory())
				limit.Add(*r.Limits.Memory())
			}
		}
		// What is left is for PostgreSQL, and for NATS servers if they are apart.
		if cpu.Cmp(resource.MustParse("4")) > 0 || memory.Cmp(resource.MustParse("4G")) > 0 || limit.Cmp(resource.MustParse("5G")) > 0 || cpu.IsZero() || limit.IsZero() {
			t.Errorf("%s: %s CPUs, %s memory, at most %s", name, cpu.String(), memory.String(), limit.String())
		}
	}
}

func TestNodesWithEmbeddedNATSKnowEachOther(t *testing.T) {
	o, err := render(t, configurations["cluster in production"])
	if err != nil {
		t.Fatal(err)
	}
	set := o["StatefulSet/freshet"].(*appsv1.StatefulSet)
	peers := strings.Split(o.workloads()[0].env()["FRESHET_NATS_PEERS"].Value, ",")
	if len(peers) != 5 || peers[4] != "freshet-4."+set.Spec.ServiceName+".live.svc:6222" || set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
		t.Errorf("peers %q, %s", peers, set.Spec.PodManagementPolicy)
	}
	if s := o["Service/"+set.Spec.ServiceName].(*corev1.Service); s.Spec.ClusterIP != "None" || !s.Spec.PublishNotReadyAddresses {
		t.Errorf("%+v", s.Spec)
	}
	for name, required := range map[string]bool{"FRESHET_DATABASE": true, "FRESHET_NATS_SECRET": true, "FRESHET_ADMIN_PASSWORD": true, "FRESHET_ACTIVATION_KEY": false} {
		ref := o.workloads()[0].env()[name].ValueFrom
		if ref == nil || ref.SecretKeyRef.Name != "s" || *ref.SecretKeyRef.Optional == required {
			t.Errorf("%s comes from %+v", name, ref)
		}
	}
	policy := o["NetworkPolicy/freshet"].(*networkingv1.NetworkPolicy)
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			if p.Port.IntValue() == 6222 && len(rule.From) != 1 || p.Port.IntValue() == 8001 {
				t.Errorf("the policy lets in: %+v", rule)
			}
		}
	}
}

func TestASplitClusterScalesAPIsAndStreamsApart(t *testing.T) {
	o, err := render(t, configurations["cluster, split and scaled"])
	if err != nil {
		t.Fatal(err)
	}
	for name, roles := range map[string]string{"freshet-api": "gateway,manage,publish,poll", "freshet-subscriber": "subscribe"} {
		d := o["Deployment/"+name].(*appsv1.Deployment)
		w := workload{pod: d.Spec.Template}
		if got := w.env()["FRESHET_ROLES"].Value; got != roles || d.Spec.Replicas != nil {
			t.Errorf("%s: roles %s, replicas %v", name, got, d.Spec.Replicas)
		}
		if o["HorizontalPodAutoscaler/"+name] == nil || o["PodDisruptionBudget/"+name] == nil {
			t.Errorf("%s has no autoscaler or no budget", name)
		}
		if ref := w.env()["FRESHET_NATS"].ValueFrom; ref == nil || *ref.SecretKeyRef.Optional {
			t.Errorf("%s: NATS comes from %+v", name, ref)
		}
	}
}

// TestStreamsNeedNoRightToWrite: their pods can have a database user of their own.
func TestStreamsNeedNoRightToWrite(t *testing.T) {
	o, err := render(t, `{mode: cluster, cluster: {nats: external, split: true}, secrets: {existingSecret: s, keys: {readerDatabase: reader-url}}}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{"freshet-api": "database-url", "freshet-subscriber": "reader-url"} {
		w := workload{pod: o["Deployment/"+name].(*appsv1.Deployment).Spec.Template}
		if ref := w.env()["FRESHET_DATABASE"].ValueFrom; ref == nil || ref.SecretKeyRef.Key != key || *ref.SecretKeyRef.Optional {
			t.Errorf("%s: the database comes from %+v", name, ref)
		}
	}
}

func TestTLSAndHostsReachTheIngress(t *testing.T) {
	o, err := render(t, configurations["single with everything"])
	if err != nil {
		t.Fatal(err)
	}
	for name, host := range map[string]string{"gateway": "freshet.test", "subscriber": "live.freshet.test"} {
		i := o["Ingress/freshet-"+name].(*networkingv1.Ingress)
		if i.Spec.Rules[0].Host != host || i.Spec.TLS[0].Hosts[0] != host || i.Spec.TLS[0].SecretName != "own-tls" || *i.Spec.IngressClassName != "nginx" || i.Annotations["a"] != "b" {
			t.Errorf("%s: %+v", name, i.Spec)
		}
		if buffering := i.Annotations["nginx.ingress.kubernetes.io/proxy-buffering"]; (buffering == "off") != (name == "subscriber") {
			t.Errorf("%s: buffering is %q", name, buffering)
		}
	}
	// Where the console finds the streams.
	if url := o.workloads()[0].env()["FRESHET_SUBSCRIBER_PUBLIC_URL"].Value; url != "https://live.freshet.test" {
		t.Errorf("streams are said to be at %q", url)
	}
	if settings := o["ConfigMap/freshet"].(*corev1.ConfigMap).Data["freshet.yaml"]; !strings.Contains(settings, "max_body: 8MiB") {
		t.Errorf("settings: %s", settings)
	}
	if image := o.workloads()[0].pod.Spec.Containers[0].Image; !strings.Contains(image, "@sha256:") {
		t.Errorf("image %s", image)
	}
}

func TestMistakesInValuesAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		`{mode: clustr}`:                 "mode",
		`{mode: cluster}`:                "mode cluster needs secrets.existingSecret",
		`{environment: production}`:      "environment production needs secrets.existingSecret",
		`{autoscaling: {enabled: true}}`: "autoscaling needs mode cluster with cluster.nats external",
		`{cluster: {split: true}}`:       "cluster.split needs mode cluster",
		`{mode: cluster, secrets: {existingSecret: s}, cluster: {replicas: 4}}`: "must be odd",
		`{metrics: {serviceMonitor: {enabled: true}}}`:                          "needs metrics.enabled",
		`{tls: {enabld: true}}`:                                                 "enabld",
		`{tls: {enabled: "yes"}}`:                                               "enabled",
		`{hots: x}`:                                                             "hots",
		`{host: "https://x"}`:                                                   "host",
		`{image: {digest: "latest"}}`:                                           "digest",
		`{service: {gatewayPort: 0}}`:                                           "gatewayPort",
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

func TestTheSchemaKnowsEveryValue(t *testing.T) {
	var schema struct {
		Properties           map[string]any
		AdditionalProperties *bool
	}
	c := load(t)
	if err := json.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.AdditionalProperties == nil || *schema.AdditionalProperties {
		t.Error("a misspelt value would go unnoticed")
	}
	for name := range c.Values {
		if schema.Properties[name] == nil {
			t.Errorf("%s is not in the schema", name)
		}
	}
}
