package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshet-io/freshet"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "freshet.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLaterLayersWin(t *testing.T) {
	file := writeFile(t, "data: from-file\nadmin: {email: file@example.com}\n")
	const variable, sdio = "FRESHET_ADMIN_EMAIL=env@example.com", "SDIO_admin_email=sdio@example.com"
	flag := map[string]string{"admin-email": "flag@example.com"}
	for _, c := range []struct {
		name  string
		src   Sources
		want  string
		from  string
		layer Layer
	}{
		{"default", Sources{}, freshet.FixedAdminEmail, "default", LayerDefault},
		{"file over default", Sources{File: file}, "file@example.com", file + ":2", LayerFile},
		{"file named by a variable", Sources{Environ: []string{"FRESHET_CONFIG=" + file}}, "file@example.com", file + ":2", LayerFile},
		{"environment over file", Sources{File: file, Environ: []string{variable}}, "env@example.com", "FRESHET_ADMIN_EMAIL", LayerEnvironment},
		{"SDIO_admin_email over file", Sources{File: file, Environ: []string{sdio}}, "sdio@example.com", AdminEmailVariable, LayerEnvironment},
		{"SDIO_admin_email over FRESHET_ADMIN_EMAIL", Sources{Environ: []string{sdio, variable}}, "sdio@example.com", AdminEmailVariable, LayerEnvironment},
		{"another spelling means nothing", Sources{Environ: []string{"SDIO_ADMIN_EMAIL=x@example.com"}}, freshet.FixedAdminEmail, "default", LayerDefault},
		{"flag over SDIO_admin_email", Sources{File: file, Environ: []string{sdio, variable}, Flags: flag}, "flag@example.com", "--admin-email", LayerFlag},
		{"an empty variable is not set", Sources{File: file, Environ: []string{"FRESHET_ADMIN_EMAIL="}}, "file@example.com", file + ":2", LayerFile},
		{"the last of two variables counts", Sources{Environ: []string{"FRESHET_ADMIN_EMAIL=a@example.com", variable}}, "env@example.com", "FRESHET_ADMIN_EMAIL", LayerEnvironment},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := Load(c.src)
			if err != nil {
				t.Fatal(err)
			}
			o := e.Origin("admin.email")
			if e.Settings.Admin.Email != c.want || o.String() != c.from || o.Layer != c.layer {
				t.Errorf("got %s from %s, want %s from %s", e.Settings.Admin.Email, o, c.want, c.from)
			}
		})
	}
}

func TestTheFlagNamesTheFileRatherThanTheVariable(t *testing.T) {
	a, b := writeFile(t, "data: a\n"), writeFile(t, "data: b\n")
	e, err := Load(Sources{File: a, Environ: []string{"FRESHET_CONFIG=" + b}})
	if err != nil || e.Settings.Data != "a" {
		t.Errorf("got %v, %v", e, err)
	}
}

func TestSecretsCanComeFromFiles(t *testing.T) {
	path := writeFile(t, "correct horse\r\n")
	e, err := Load(Sources{Environ: []string{"FRESHET_ADMIN_PASSWORD_FILE=" + path}})
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Settings.Admin.Password.Reveal(); got != "correct horse" {
		t.Errorf("got %q", got)
	}
	if got := e.Origin("admin.password").String(); got != "FRESHET_ADMIN_PASSWORD_FILE" {
		t.Errorf("it came from %s", got)
	}
}

func TestFilesWithSecretsThatOthersCanReadAreTold(t *testing.T) {
	path := writeFile(t, "0123456789abcdef0123456789abcdef\n")
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o640: 1, 0o644: 1} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		e, err := Load(Sources{Environ: []string{"FRESHET_TOKEN_SECRET_FILE=" + path}})
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Exposed) != want || (want > 0 && e.Exposed[0] != ExposedFile{"FRESHET_TOKEN_SECRET_FILE", path}) {
			t.Errorf("mode %o: %v", mode, e.Exposed)
		}
	}
}

func faultsOf(t *testing.T, src Sources) []string {
	t.Helper()
	_, err := Load(src)
	if err == nil {
		return nil
	}
	if freshet.KindOf(err) != freshet.Invalid {
		t.Errorf("%v is not of kind Invalid", err)
	}
	var all *Error
	if !errors.As(err, &all) {
		t.Fatalf("%T is not *Error", err)
	}
	var texts []string
	for _, f := range all.Faults {
		text := f.String()
		if src.File != "" {
			text = strings.ReplaceAll(text, src.File, "FILE")
		}
		texts = append(texts, text)
	}
	return texts
}

func TestEverythingWrongIsReportedAtOnce(t *testing.T) {
	src := Sources{
		File: writeFile(t, `environment: prodution
subscriber:
  lisen: :7080
  heartbeat: 10
log: json
data: {a: 1}
roles: [gateway, subscrbie]
publish:
  max_body: 4MB
nonsense: 1
token:
  secret: hunter2
database: mysql://root:hunter2@x/y
`),
		Environ: []string{"FRESHET_SUBSCRIBER_LISEN=1", "FRESHET_PORT=80", "FRESHET_LOG_LEVEL=loud", "FRESHET_NATS=u:hunter2@x"},
		Flags:   map[string]string{"admin-password": "hunter2", "signup": "opne", "quotas-connections": "-1"},
		Unknown: []string{"--gatway-listen", "-x"},
	}
	want := []string{
		`FILE:1: environment must be one of development, production, not "prodution"; did you mean production?`,
		`FILE:3: subscriber.lisen is not a setting; did you mean subscriber.listen?`,
		`FILE:4: subscriber.heartbeat must be a duration from 100ms to 1h, written like 500ms, 30s or 24h, not "10"`,
		`FILE:5: log is a group of settings; it holds format, level`,
		`FILE:6: data needs one value here: a directory`,
		`FILE:7: roles must be a list of gateway, manage, publish, poll, subscribe, not "subscrbie"; did you mean subscribe?`,
		`FILE:9: publish.max_body must be a size from 1KiB to 64MiB, such as 512KiB or 4MiB, not "4MB"`,
		`FILE:10: nonsense is not a setting; freshet config print lists them all`,
		`FILE:12: token.secret must have at least 32 characters`,
		`FILE:13: database must be empty (the embedded database) or a URL such as postgres://user:password@host:5432/freshet`,
		`FRESHET_NATS: nats must be empty (one node alone), embedded, or URLs such as nats://user:password@host:4222,nats://other:4222`,
		`FRESHET_LOG_LEVEL: log.level must be one of debug, info, warn, error, not "loud"`,
		`FRESHET_PORT is not a setting; freshet config print lists them all`,
		`FRESHET_SUBSCRIBER_LISEN is not a setting; did you mean FRESHET_SUBSCRIBER_LISTEN?`,
		`--signup: signup must be one of open, admin, not "opne"; did you mean open?`,
		`--admin-password: admin.password must have at least 8 characters`,
		`--quotas-connections: quotas.connections must be a whole number, 0 or more, not "-1"`,
		`--gatway-listen is not a flag; did you mean --gateway-listen?`,
		`-x is not a flag`,
	}
	if diff := cmp.Diff(want, faultsOf(t, src)); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if _, err := Load(src); contains(err.Error(), "hunter2") {
		t.Errorf("a secret shows: %v", err)
	}
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"twice the same key", "data: a\ndata: b\n", "FILE:2: data is set on line 1 already"},
		{"twice the same key in two spellings", "log: {format: json}\nlog.format: text\n", "FILE:2: log.format is set on line 1 already"},
		{"a value without text", "data:\n", "FILE:1: data needs one value here: a directory"},
		{"an alias", "data: &x a\nsignup: *x\n", "FILE:2: signup needs one value here: one of open, admin"},
		{"a merge", "a: &a {b: 1}\n", "FILE:1: a is not a setting; freshet config print lists them all"},
		{"a group that is not one", "subscribr: {listen: ':0'}\n", "FILE:1: subscribr is not a setting; did you mean subscriber?"},
		{"a list of settings", "- data\n", "FILE:1: must hold settings as key: value"},
		{"a list where one value belongs", "data: [a]\n", "FILE:1: data needs one value here: a directory"},
		{"nested lists", "roles: [[gateway]]\n", "FILE:1: roles needs a list here: a list of gateway, manage, publish, poll, subscribe"},
		{"two documents", "data: a\n---\ndata: b\n", "FILE:2: only one YAML document is allowed"},
		{"broken YAML", "data: a\nlog: [\n", "FILE:2: did not find expected node content"},
		{"an empty text", "data: ''\n", "FILE:1: data must not be empty"},
		{"a control character", "signup: \"a\\e[31mb\"\n", `FILE:1: signup must be one of open, admin, not "a\x1b[31mb"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff([]string{c.want}, faultsOf(t, Sources{File: writeFile(t, c.content)})); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
	if got := faultsOf(t, Sources{File: "/does/not/exist"}); len(got) != 1 || got[0] != "--config: FILE cannot be read: no such file or directory" {
		t.Errorf("got %q", got)
	}
	if got := faultsOf(t, Sources{Environ: []string{"FRESHET_CONFIG=/does/not/exist"}}); len(got) != 1 || got[0] != "FRESHET_CONFIG: /does/not/exist cannot be read: no such file or directory" {
		t.Errorf("got %q", got)
	}
}

func TestFilesThatAreFine(t *testing.T) {
	for name, content := range map[string]string{
		"empty":                  "",
		"comments only":          "# nothing\n",
		"null":                   "~\n",
		"a group without lines":  "log:\n  # format: json\n",
		"dotted keys":            "log.format: json\ngateway.listen: ':0'\n",
		"a list as text":         "roles: publish, poll\n",
		"a list with block form": "roles:\n  - publish\n  - poll\n",
		"numbers and texts":      "quotas: {connections: 5, messages_per_month: '6'}\n",
		"a group in two places":  "log: {format: json}\ndata: x\nlog.level: debug\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := faultsOf(t, Sources{File: writeFile(t, content)}); got != nil {
				t.Errorf("refused: %q", got)
			}
		})
	}
}

func TestVariablesThatCannotBeUsed(t *testing.T) {
	path := writeFile(t, "correct horse\n")
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{[]string{"FRESHET_ADMIN_PASSWORD_FILE=/nope"}, "FRESHET_ADMIN_PASSWORD_FILE: /nope cannot be read: no such file or directory"},
		{[]string{"FRESHET_ADMIN_PASSWORD=correct horse", "FRESHET_ADMIN_PASSWORD_FILE=" + path}, "FRESHET_ADMIN_PASSWORD_FILE: admin.password is set by FRESHET_ADMIN_PASSWORD as well; keep one of them"},
		{[]string{"FRESHET_DATA_FILE=x"}, "FRESHET_DATA_FILE is not a setting; freshet config print lists them all"},
		{[]string{"FRESHET_TYPO="}, "FRESHET_TYPO is not a setting; freshet config print lists them all"},
		{[]string{"FRESHET_TELEMETRY_ENDPOINT=http://ada:hunter2@host/?key=hunter2"}, `FRESHET_TELEMETRY_ENDPOINT: telemetry.endpoint must be empty, or a URL such as http://10.0.0.1:8000, not "http://xxxxx@host/"`},
		{[]string{"FRESHET_GATEWAY_MANAGE_URL=http://ada:hunter%2@host"}, `FRESHET_GATEWAY_MANAGE_URL: gateway.manage_url must be empty, or a URL such as http://10.0.0.1:8000, not "http://xxxxx@host"`},
		{[]string{"SDIO_admin_email=nobody"}, `SDIO_admin_email: admin.email must be an e-mail address like name@example.com, not "nobody"`},
	} {
		if diff := cmp.Diff([]string{c.want}, faultsOf(t, Sources{Environ: c.environ})); diff != "" {
			t.Errorf("%v: want (-), got (+):\n%s", c.environ, diff)
		}
	}
}

func TestVariablesOfOthersAreLeftAlone(t *testing.T) {
	got := faultsOf(t, Sources{Environ: []string{
		"PATH=/bin", "freshet_data=x", "=C:=C:\\", "FRESHET_TEST_ANYTHING=1", "FRESHET_ACTIVE_HELP=1",
		// What Kubernetes sets for services called freshet and freshet-subscriber.
		"FRESHET_SERVICE_HOST=10.0.0.1", "FRESHET_SERVICE_PORT=8000", "FRESHET_SERVICE_PORT_GATEWAY=8000", "FRESHET_PORT=tcp://10.0.0.1:8000",
		"FRESHET_PORT_8000_TCP=tcp://10.0.0.1:8000", "FRESHET_PORT_8000_TCP_ADDR=10.0.0.1", "FRESHET_PORT_8000_TCP_PROTO=tcp",
		"FRESHET_SUBSCRIBER_SERVICE_HOST=10.0.0.2", "FRESHET_SUBSCRIBER_PORT=tcp://10.0.0.2:6080", "FRESHET_SUBSCRIBER_PORT_6080_TCP_PORT=6080",
	}})
	if got != nil {
		t.Errorf("refused: %q", got)
	}
}

func TestTwoListenersCannotShareAPort(t *testing.T) {
	for _, c := range []struct {
		gateway, admin string
		collide        bool
	}{
		{":8000", "127.0.0.1:8000", true},
		{"127.0.0.1:8000", "127.0.0.1:8000", true},
		{"0.0.0.0:8000", "[::1]:8000", true},
		{"127.0.0.1:8000", "127.0.0.2:8000", false},
		{":0", ":0", false},
		{":8000", ":8001", false},
	} {
		got := faultsOf(t, Sources{Flags: map[string]string{"gateway-listen": c.gateway, "admin-listen": c.admin}})
		if (got != nil) != c.collide {
			t.Errorf("%s and %s: %q", c.gateway, c.admin, got)
		}
	}
}

func TestLongValuesAreCutInMessages(t *testing.T) {
	got := faultsOf(t, Sources{Flags: map[string]string{"signup": strings.Repeat("é", 5000)}})
	if len(got) != 1 || len(got[0]) > 200 {
		t.Errorf("got %q", got)
	}
}

func FuzzFileNeverPanics(f *testing.F) {
	f.Add("data: x\nlog: {format: json}\n")
	f.Add("a: &a [*a]\n")
	f.Add("? {a: b}\n: c\n<<: {data: x}\n")
	f.Add("\xef\xbb\xbfdata: 'x'")
	path := filepath.Join(f.TempDir(), "freshet.yaml")
	f.Fuzz(func(t *testing.T, content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := Load(Sources{File: path})
		if err == nil {
			checkRoundTrip(t, e)
		}
	})
}

func TestProductionInsistsOnATokenForAnOpenAdministration(t *testing.T) {
	for _, c := range []struct {
		environment, listen, token string
		refused                    bool
	}{
		{"production", "127.0.0.1:8001", "", false},
		{"production", "[::1]:8001", "", false},
		{"production", "localhost:8001", "", false},
		{"production", ":8001", "", true},
		{"production", "0.0.0.0:8001", "", true},
		{"production", "10.0.0.1:8001", "", true},
		{"production", "admin.internal:8001", "", true},
		{"production", ":8001", "a-token-of-some-length", false},
		{"development", ":8001", "", false},
	} {
		flags := map[string]string{"environment": c.environment, "admin-listen": c.listen, "admin-token": c.token}
		_, err := Load(Sources{Flags: flags})
		if (err != nil) != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil && !strings.Contains(err.Error(), "admin.token") {
			t.Errorf("%v does not say what to do", err)
		}
	}
	if _, err := Load(Sources{Flags: map[string]string{"admin-token": "short"}}); err == nil || strings.Contains(err.Error(), "short ") {
		t.Errorf("a short token: %v", err)
	}
}

func TestAClusterIsRefusedWhereItCannotWork(t *testing.T) {
	for _, c := range []struct {
		flags map[string]string
		want  string
	}{
		{map[string]string{"nats": "nats://a:4222,tls://b:4222"}, ""},
		{map[string]string{"nats": "nats://a:4222", "database": "postgres://h/d", "roles": "subscribe"}, ""},
		{map[string]string{"nats": "embedded", "database": "postgres://h/d", "nats-peers": "a:6222,b:6222"}, ""},
		{map[string]string{"nats": "nats://a:4222", "roles": "subscribe"}, "roles without manage need the database of a node that has it; set database"},
		{map[string]string{"nats": "embedded", "nats-peers": "a:6222"}, "database must be set with nats_peers: the nodes of a cluster share one"},
		{map[string]string{"nats-peers": "a:6222", "database": "postgres://h/d"}, "nats_peers and nats_listen are for the embedded server; set nats to embedded"},
		{
			map[string]string{"nats": "embedded", "nats-peers": "a:6222", "database": "postgres://h/d", "environment": "production"},
			"nats_secret is required in production: without it anybody who reaches nats_cluster_listen can join the cluster",
		},
		{map[string]string{"nats": "nats://a:4222", "nats-certificate": "x.pem"}, "nats_certificate and nats_key belong together; set both or neither"},
	} {
		_, err := Load(Sources{Flags: c.flags})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.flags, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: got %v, want %s", c.flags, err, c.want)
		}
	}
}

func TestSignUpsAreLimitedInProductionUnlessSetOtherwise(t *testing.T) {
	for flags, want := range map[string]int64{"": 0, "production": 20, "production 0": 0, "production 7": 7, "development 7": 7} {
		set := map[string]string{}
		environment, limit, _ := strings.Cut(flags, " ")
		if environment != "" {
			set["environment"] = environment
		}
		if limit != "" {
			set["limits-signups-per-address"] = limit
		}
		e, err := Load(Sources{Flags: set})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Settings.SignupsPerAddress(); got != want {
			t.Errorf("%q: %d, want %d", flags, got, want)
		}
	}
}
