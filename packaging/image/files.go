package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user and group of the process: the number that other images of this kind use, so that one rule of a
// cluster fits all of them.
const nobody = 65532

// file is one file or directory of the image, owned by root unless it says otherwise.
type file struct {
	name    string // without the first slash; a directory ends with one
	mode    int64
	owner   int
	content []byte
}

func (f file) isDir() bool { return strings.HasSuffix(f.name, "/") }

func (f file) header(at time.Time) *tar.Header {
	h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if f.isDir() {
		h.Typeflag = tar.TypeDir
	}
	return h
}

// ground is everything but the program.
func ground() []file {
	return []file{
		{name: "bin/", mode: 0o755},
		{name: "data/", mode: 0o700, owner: nobody},
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nfreshet:x:%d:\n", nobody)},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil,
			"root:x:0:0:root:/:/nonexistent\nfreshet:x:%d:%d:freshet:/data:/nonexistent\n", nobody, nobody)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities()},
		{name: "tmp/", mode: 0o1777},
	}
}

func program(binary []byte) []file {
	return []file{{name: "bin/freshet", mode: 0o755, content: binary}}
}

// authorities are Mozilla's, from a pinned module and not from the machine that builds. Those that are only trusted under
// conditions are left out: a file cannot express them.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return b.Bytes()
}

// writeRoot writes the files of an image to a directory. Owners are left to whoever copies them from there.
func (r *release) writeRoot(platform, dir string) error {
	p, err := v1.ParsePlatform(platform)
	if err != nil {
		return err
	}
	binary, err := r.compile(*p)
	if err != nil {
		return err
	}
	for _, f := range append(ground(), program(binary)...) {
		path := filepath.Join(dir, f.name)
		if f.isDir() {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, f.content, 0o600)
		}
		if err != nil {
			return err
		}
		mode := os.FileMode(f.mode & 0o777)
		if f.mode&0o1000 != 0 {
			mode |= os.ModeSticky
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	return nil
}
