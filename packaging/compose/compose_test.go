package compose

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// load reads a file as docker compose would, with the given environment.
func load(t *testing.T, file string, env map[string]string) (*types.Project, error) {
	t.Helper()
	raw, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  "../..",
		ConfigFiles: []types.ConfigFile{{Filename: file, Content: raw}},
		Environment: maps.Clone(env), // the loader adds to it
	})
}

var passwords = map[string]string{"POSTGRES_PASSWORD": "pg-secret", "NATS_PASSWORD": "nats-secret"}

func must(t *testing.T, file string) *types.Project {
	t.Helper()
	p, err := load(t, file, passwords)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func isFreshet(s types.ServiceConfig) bool { return strings.HasPrefix(s.Image, "freshet:") }

func TestFreshetIsConfinedEverywhere(t *testing.T) {
	for _, file := range []string{"compose.yaml", "compose.cluster.yaml"} {
		for name, s := range must(t, file).Services {
			if !isFreshet(s) {
				continue
			}
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Privileged {
				t.Errorf("%s: %s is not confined", file, name)
			}
			if s.StopGracePeriod == nil || s.StopGracePeriod.String() != "45s" {
				t.Errorf("%s: %s may take %v to drain", file, name, s.StopGracePeriod)
			}
			if s.Ulimits["nofile"].Single < 100_000 {
				t.Errorf("%s: %s may open %d files", file, name, s.Ulimits["nofile"].Single)
			}
			for _, port := range s.Ports {
				if port.Target == 8001 && port.HostIP != "127.0.0.1" {
					t.Errorf("%s: %s offers its administration to the world", file, name)
				}
			}
		}
	}
}

func TestOneHostNeedsLessThanTwoCPUsAndSixGigabytes(t *testing.T) {
	p := must(t, "compose.yaml")
	if cpus, bytes := limits(t, p); cpus > 2 || bytes > 6<<30 {
		t.Errorf("%v CPUs, %d bytes", cpus, bytes)
	}
	s := p.Services["freshet"]
	if len(p.Services) != 1 || len(s.Volumes) != 1 || s.Volumes[0].Target != "/data" || s.Volumes[0].Type != "volume" {
		t.Errorf("got %+v", s.Volumes)
	}
	// Without a key it is the beta edition: the image knows that by itself, and nothing here may tell it otherwise.
	if key := s.Environment["FRESHET_ACTIVATION_KEY"]; key == nil || *key != "" || s.Environment["FRESHET_DISTRIBUTION"] != nil {
		t.Errorf("environment: %v", s.Environment)
	}
}

func TestAClusterNeedsLessThanSixCPUsAndSevenGigabytes(t *testing.T) {
	if cpus, bytes := limits(t, must(t, "compose.cluster.yaml")); cpus > 6 || bytes > 7_000_000_000 {
		t.Errorf("%v CPUs, %d bytes", cpus, bytes)
	}
}

// limits adds up what all services may use; each must say.
func limits(t *testing.T, p *types.Project) (cpus float64, bytes int64) {
	t.Helper()
	for name, s := range p.Services {
		if s.Deploy == nil || s.Deploy.Resources.Limits == nil || s.Deploy.Resources.Limits.NanoCPUs == 0 || s.Deploy.Resources.Limits.MemoryBytes == 0 {
			t.Errorf("%s has no limits", name)
			continue
		}
		cpus += float64(s.Deploy.Resources.Limits.NanoCPUs.Value())
		bytes += int64(s.Deploy.Resources.Limits.MemoryBytes)
	}
	return cpus, bytes
}

func TestTheClusterIsThreeOfEachOverOneDatabase(t *testing.T) {
	p := must(t, "compose.cluster.yaml")
	nodes, servers, ports := 0, 0, map[string]string{}
	for name, s := range p.Services {
		switch {
		case isFreshet(s):
			nodes++
			urls := *s.Environment["FRESHET_NATS"]
			for _, want := range []string{"nats-secret@nats-1:4222", "nats-secret@nats-2:4222", "nats-secret@nats-3:4222"} {
				if !strings.Contains(urls, want) {
					t.Errorf("%s does not know %s", name, want)
				}
			}
			if database := *s.Environment["FRESHET_DATABASE"]; database != "postgres://freshet:pg-secret@postgres:5432/freshet" {
				t.Errorf("%s uses %s", name, database)
			}
			for _, port := range s.Ports {
				if other := ports[port.Published]; other != "" {
					t.Errorf("%s and %s both want port %s", name, other, port.Published)
				}
				ports[port.Published] = name
			}
		case strings.HasPrefix(s.Image, "nats:"):
			servers++
			if !slices.Contains(s.Command, name) || s.Volumes[0].Source != name {
				t.Errorf("%s: %v on %v", name, s.Command, s.Volumes)
			}
			if len(s.Ports) > 0 {
				t.Errorf("%s can be reached from outside", name)
			}
		}
	}
	if nodes != 3 || servers != 3 || p.Services["postgres"].HealthCheck == nil {
		t.Errorf("%d nodes, %d NATS servers", nodes, servers)
	}
	configuration := p.Configs["nats"].Content
	for _, want := range []string{`password: "nats-secret"`, "jetstream", "nats://route:nats-secret@nats-3:6222"} {
		if !strings.Contains(configuration, want) {
			t.Errorf("the configuration of NATS has no %q:\n%s", want, configuration)
		}
	}
}

func TestPasswordsHaveNoDefault(t *testing.T) {
	for missing := range passwords {
		env := map[string]string{}
		for name, value := range passwords {
			if name != missing {
				env[name] = value
			}
		}
		if _, err := load(t, "compose.cluster.yaml", env); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}
