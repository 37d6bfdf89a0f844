package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const hostArchitecture = runtime.GOARCH

var testRelease = release{Source: "../..", Version: "1.2.3", Commit: "abcdef", Created: time.Unix(1_700_000_000, 0).UTC()}

// built makes the image once for all tests: compiling takes a while.
var built = sync.OnceValues(func() (v1.Image, error) {
	return testRelease.image(v1.Platform{OS: "linux", Architecture: hostArchitecture})
})

func image(t *testing.T) v1.Image {
	t.Helper()
	img, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// entries are the files of the image with all layers on top of each other.
func entries(t *testing.T, img v1.Image) map[string]*tar.Header {
	t.Helper()
	all := map[string]*tar.Header{}
	eachFile(t, img, func(h *tar.Header, _ []byte) { all[h.Name] = h })
	return all
}

func eachFile(t *testing.T, img v1.Image, visit func(*tar.Header, []byte)) {
	t.Helper()
	flat := mutate.Extract(img)
	defer flat.Close()
	for r := tar.NewReader(flat); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		visit(h, content)
	}
}

func TestTheImageHoldsTheseFilesAndNoOthers(t *testing.T) {
	type want struct {
		mode  int64
		owner int
	}
	wanted := map[string]want{
		"bin": {0o755, 0}, "bin/freshet": {0o755, 0},
		"data": {0o700, nobody},
		"etc":  {0o755, 0}, "etc/group": {0o644, 0}, "etc/passwd": {0o644, 0},
		"etc/ssl": {0o755, 0}, "etc/ssl/certs": {0o755, 0}, "etc/ssl/certs/ca-certificates.crt": {0o644, 0},
		"tmp": {0o1777, 0},
	}
	for name, h := range entries(t, image(t)) {
		w, ok := wanted[strings.TrimSuffix(name, "/")]
		if !ok || h.Mode != w.mode || h.Uid != w.owner || h.Gid != w.owner || !h.ModTime.Equal(testRelease.Created) {
			t.Errorf("%s: mode %o, owner %d:%d, date %s", name, h.Mode, h.Uid, h.Gid, h.ModTime)
		}
		delete(wanted, strings.TrimSuffix(name, "/"))
	}
	for name := range wanted {
		t.Errorf("%s is missing", name)
	}
}

func TestTheAuthoritiesCanBeReadAndAreMany(t *testing.T) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities()) {
		t.Fatal("not one certificate can be read")
	}
	if n := bytes.Count(authorities(), []byte("BEGIN CERTIFICATE")); n < 80 {
		t.Errorf("only %d authorities", n)
	}
}

func TestTheImageRunsAsNobodyAndChecksItsHealth(t *testing.T) {
	file, err := image(t).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := file.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/bin/freshet"}) || !slices.Equal(c.Cmd, []string{"serve"}) {
		t.Errorf("it runs %q %q as %q", c.Entrypoint, c.Cmd, c.User)
	}
	if c.Healthcheck == nil || !slices.Equal(c.Healthcheck.Test, []string{"CMD", "/bin/freshet", "healthcheck"}) {
		t.Errorf("health check: %+v", c.Healthcheck)
	}
	for _, port := range []string{"8000/tcp", "8001/tcp", "6080/tcp"} {
		if _, ok := c.ExposedPorts[port]; !ok {
			t.Errorf("%s is not exposed", port)
		}
	}
	if !slices.Contains(c.Env, "FRESHET_DISTRIBUTION=container") {
		t.Errorf("it does not know that it is a container: %q", c.Env)
	}
	if c.Labels["org.opencontainers.image.version"] != "1.2.3" || c.Labels["org.opencontainers.image.revision"] != "abcdef" {
		t.Errorf("labels: %v", c.Labels)
	}
	if file.OS != "linux" || file.Architecture != hostArchitecture || len(file.RootFS.DiffIDs) != 2 || len(file.History) != 2 {
		t.Errorf("platform %s/%s, %d layers, %d steps", file.OS, file.Architecture, len(file.RootFS.DiffIDs), len(file.History))
	}
}

func TestTheSameSourceGivesTheSameDigest(t *testing.T) {
	first, err := image(t).Digest()
	if err != nil {
		t.Fatal(err)
	}
	again, err := testRelease.image(v1.Platform{OS: "linux", Architecture: hostArchitecture})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := again.Digest(); err != nil || second != first {
		t.Errorf("%s, then %s, %v", first, second, err)
	}
	for name, h := range entries(t, again) {
		if h.Uname != "" || h.Gname != "" || !h.AccessTime.IsZero() || !h.ChangeTime.IsZero() {
			t.Errorf("%s says more than it should: %+v", name, h)
		}
	}
}

func TestLayoutAndArchiveHoldTheImage(t *testing.T) {
	dir := t.TempDir()
	r := testRelease
	var said bytes.Buffer
	at := filepath.Join(dir, "layout")
	if err := r.write([]string{"linux/" + hostArchitecture}, at, dir, "freshet:test", &said); err != nil {
		t.Fatal(err)
	}
	want, err := image(t).Digest()
	if err != nil {
		t.Fatal(err)
	}
	outer, err := layout.ImageIndexFromPath(at)
	if err != nil {
		t.Fatal(err)
	}
	top, err := outer.IndexManifest()
	if err != nil || len(top.Manifests) != 1 || top.Manifests[0].Annotations[refName] != "test" {
		t.Fatalf("the layout is %+v, %v", top, err)
	}
	index, err := outer.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != want || manifest.Manifests[0].Platform.Architecture != hostArchitecture {
		t.Errorf("the layout holds %+v, %v, want %s", manifest, err, want)
	}
	loaded, err := tarball.ImageFromPath(filepath.Join(dir, "freshet-linux-"+hostArchitecture+".tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	inArchive, err := loaded.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if name, err := image(t).ConfigName(); err != nil || inArchive != name {
		t.Errorf("the archive holds %s, want %s, %v", inArchive, name, err)
	}
	if !strings.Contains(said.String(), want.String()) {
		t.Errorf("it says %s", said.String())
	}
}

// TestTheDockerfileMakesTheSameImage compares what both say about running a container. Files need no comparison: they come
// from the same program.
func TestTheDockerfileMakesTheSameImage(t *testing.T) {
	raw, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, final, ok := strings.Cut(strings.ReplaceAll(string(raw), "\\\n", " "), "\nFROM scratch\n")
	if !ok {
		t.Fatal("the Dockerfile has no last stage on scratch")
	}
	said := map[string]string{}
	for line := range strings.Lines(final) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		said[word] = strings.Join(strings.Fields(rest), " ")
	}
	file, err := image(t).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := file.Config
	list := func(words []string) string { return strings.ReplaceAll(string(mustJSON(t, words)), `","`, `", "`) }
	for instruction, want := range map[string]string{
		"USER": c.User, "ENV": strings.Join(c.Env, " "), "WORKDIR": c.WorkingDir, "VOLUME": `["/data"]`, "STOPSIGNAL": c.StopSignal,
		"ENTRYPOINT": list(c.Entrypoint), "CMD": list(c.Cmd), "EXPOSE": "8000/tcp 8001/tcp 6080/tcp",
		"HEALTHCHECK": "--interval=10s --timeout=5s --start-period=30s --retries=3 CMD " + list(c.Healthcheck.Test[1:]),
	} {
		if said[instruction] != want {
			t.Errorf("%s is %q in the Dockerfile and %q in the image", instruction, said[instruction], want)
		}
	}
	for _, label := range regexp.MustCompile(`(org\.[a-z.]+)="([^"]*)"`).FindAllStringSubmatch(said["LABEL"], -1) {
		if value := label[2]; !strings.HasPrefix(value, "$") && c.Labels[label[1]] != value {
			t.Errorf("label %s is %q in the Dockerfile and %q in the image", label[1], value, c.Labels[label[1]])
		}
		delete(c.Labels, label[1])
	}
	delete(c.Labels, "org.opencontainers.image.created") // an engine's date is the time of building
	if len(c.Labels) > 0 {
		t.Errorf("labels that the Dockerfile lacks: %v", c.Labels)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
