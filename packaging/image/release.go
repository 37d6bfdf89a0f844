package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// release is what goes into an image.
type release struct {
	Source  string // directory of the main module
	Version string
	Commit  string
	Created time.Time
}

// image builds the program and puts it into an image.
func (r *release) image(platform v1.Platform) (v1.Image, error) {
	binary, err := r.compile(platform)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	// What changes seldom comes first: an upgrade then moves the second layer only.
	for _, layer := range []struct {
		what  string
		files []file
	}{{"certificate authorities, user, data directory", ground()}, {"freshet " + r.Version, program(binary)}} {
		l, err := r.layer(layer.files)
		if err != nil {
			return nil, err
		}
		img, err = mutate.Append(img, mutate.Addendum{Layer: l, History: v1.History{
			Created: v1.Time{Time: r.Created}, CreatedBy: "packaging/image", Comment: layer.what,
		}})
		if err != nil {
			return nil, err
		}
	}
	return mutate.ConfigFile(img, r.config(img, platform))
}

// compile builds the binary so that it depends on the source and the Go version only.
func (r *release) compile(platform v1.Platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "freshet-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "freshet")
	const at = "github.com/freshet-io/freshet/internal/cli."
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", out,
		"-ldflags", "-s -w -buildid= -X "+at+"version="+r.Version+" -X "+at+"commit="+r.Commit, "./cmd/freshet")
	cmd.Dir = r.Source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOFLAGS=", "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build for %s: %w\n%s", platform, err, said)
	}
	return os.ReadFile(out)
}

func (r *release) layer(files []file) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range files {
		if err := w.WriteHeader(f.header(r.Created)); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// config is how a container of the image runs. The Dockerfile says the same, which a test holds.
func (r *release) config(img v1.Image, platform v1.Platform) *v1.ConfigFile {
	file, err := img.ConfigFile()
	if err != nil {
		panic(err) // it is in memory
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = platform.OS, platform.Architecture, platform.Variant
	file.Created = v1.Time{Time: r.Created}
	file.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", nobody, nobody),
		Env: []string{
			"PATH=/bin",
			"FRESHET_DISTRIBUTION=container",
			"FRESHET_DATA=/data",
			"FRESHET_LOG_FORMAT=json",
		},
		Entrypoint:   []string{"/bin/freshet"},
		Cmd:          []string{"serve"},
		WorkingDir:   "/data",
		Volumes:      map[string]struct{}{"/data": {}},
		ExposedPorts: map[string]struct{}{"6080/tcp": {}, "8000/tcp": {}, "8001/tcp": {}},
		StopSignal:   "SIGTERM",
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/bin/freshet", "healthcheck"},
			Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 30 * time.Second, Retries: 3,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":         "Freshet",
			"org.opencontainers.image.description":   "Real-time data distribution over Server-Sent Events",
			"org.opencontainers.image.source":        "https://github.com/freshet-io/freshet",
			"org.opencontainers.image.documentation": "https://github.com/freshet-io/freshet/blob/main/docs/operate.md",
			"org.opencontainers.image.licenses":      "Apache-2.0",
			"org.opencontainers.image.vendor":        "Freshet",
			"org.opencontainers.image.version":       r.Version,
			"org.opencontainers.image.revision":      cmp.Or(r.Commit, "unknown"),
			"org.opencontainers.image.created":       r.Created.Format(time.RFC3339),
		},
	}
	return file
}
