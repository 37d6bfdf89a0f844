// Command image makes the container image of Freshet without a container engine: the static binary, a list of
// certificate authorities and an empty data directory, on nothing.
//
// The same source, platform, version and date always give the same digest: nothing is taken from the machine that builds, and
// nothing in the image says when or where it was built. It pushes nowhere; skopeo, crane or an engine do that.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	source := flags.String("source", "..", "`directory` of the main module")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "what to build for")
	version := flags.String("version", "dev", "version of the release")
	commit := flags.String("commit", "", "commit it is built from")
	date := flags.String("date", "0", "date in the image, in `seconds` since 1970; SOURCE_DATE_EPOCH of reproducible builds")
	layoutDir := flags.String("layout", "", "write an OCI layout of all platforms to this `directory`")
	archives := flags.String("archives", "", "write freshet-OS-ARCH.tar for docker load to this `directory`")
	rootfs := flags.String("rootfs", "", "write the files of the first platform to this `directory` instead; for the Dockerfile")
	tag := flags.String("tag", "freshet:latest", "`name` in the archives; its last part is the name in the layout")
	if err := flags.Parse(args); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(*date, 10, 64)
	if err != nil {
		return fmt.Errorf("-date must be seconds since 1970, not %q", *date)
	}
	r := release{Source: *source, Version: *version, Commit: *commit, Created: time.Unix(seconds, 0).UTC()}
	if *rootfs != "" {
		first, _, _ := strings.Cut(*platforms, ",")
		return r.writeRoot(first, *rootfs)
	}
	if *layoutDir == "" && *archives == "" {
		return errors.New("-layout, -archives or -rootfs is needed: where to put the image")
	}
	return r.write(strings.Split(*platforms, ","), *layoutDir, *archives, *tag, stdout)
}

const refName = "org.opencontainers.image.ref.name"

// write builds every platform and puts the images where they were asked for.
func (r *release) write(platforms []string, layoutDir, archives, tag string, stdout io.Writer) error {
	reference, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, text := range platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return err
		}
		img, err := r.image(*platform)
		if err != nil {
			return err
		}
		digest, err := img.Digest()
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s %s\n", platform, digest)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
		if archives != "" {
			file := filepath.Join(archives, "freshet-"+platform.OS+"-"+platform.Architecture+".tar")
			if err := errors.Join(os.MkdirAll(archives, 0o755), tarball.WriteToFile(file, reference, img)); err != nil {
				return err
			}
			fmt.Fprintln(stdout, file)
		}
	}
	if layoutDir == "" {
		return nil
	}
	// A layout that exists would keep the blobs of earlier builds.
	if err := os.RemoveAll(layoutDir); err != nil {
		return err
	}
	at, err := layout.Write(layoutDir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	// One entry with a name, as tools that read layouts expect: skopeo copy --all oci:dist/image:latest docker://…
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: reference.TagStr()})); err != nil {
		return err
	}
	fmt.Fprintln(stdout, layoutDir)
	return nil
}
