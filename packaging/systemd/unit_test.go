package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const unit = "freshet.service"

// read returns the unit's lines by section and name, in their order.
func read(t *testing.T) (text string, lines map[string]map[string][]string) {
	t.Helper()
	raw, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	lines = map[string]map[string][]string{}
	section := ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		name, value, assignment := strings.Cut(line, "=")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
			lines[section] = map[string][]string{}
		case !assignment || section == "":
			t.Errorf("%q is no line of a unit", line)
		default:
			lines[section][name] = append(lines[section][name], value)
		}
	}
	return string(raw), lines
}

func TestSystemdAcceptsTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatalf("%v; scripts/needs installs it", err)
	}
	text, _ := read(t)
	dir := t.TempDir()
	// It also checks that the program exists.
	text = strings.ReplaceAll(text, "/usr/local/bin/freshet", "/bin/true")
	if err := os.WriteFile(filepath.Join(dir, unit), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, unit)).CombinedOutput()
	if err != nil || strings.Contains(string(said), unit) {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestTheUnitSaysWhatTheProgramReliesOn(t *testing.T) {
	_, lines := read(t)
	for name, want := range map[string]string{
		"Type": "notify", "ExecStart": "/usr/local/bin/freshet serve", "ExecStartPre": "/usr/local/bin/freshet config check",
		"LimitNOFILE": "1048576", "DynamicUser": "yes", "StateDirectory": "freshet", "ProtectSystem": "strict", "NoNewPrivileges": "yes",
		"CapabilityBoundingSet": "", "MemoryDenyWriteExecute": "yes", "TimeoutStopSec": "60s", "RestartPreventExitStatus": "2 3", "KillMode": "mixed",
	} {
		if got := lines["Service"][name]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if !slices.Equal(lines["Install"]["WantedBy"], []string{"multi-user.target"}) {
		t.Errorf("it is not started with the machine: %v", lines["Install"])
	}
}

func TestTheUnitSetsOnlySettingsThatExist(t *testing.T) {
	text, _ := read(t)
	reference, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`FRESHET_[A-Z_]+`).FindAllString(text, -1) {
		if !strings.Contains(string(reference), "`"+strings.TrimSuffix(name, "_FILE")+"`") {
			t.Errorf("%s is no setting", name)
		}
	}
}
