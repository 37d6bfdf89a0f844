// Package keyfile keeps the secret of an installation in a file of its own, so that a copy of the database opens nothing.
//
// It knows neither what the secret signs nor what it seals. Files are replaced as a whole, so that a crash leaves the old
// one or the new one; two processes must not write one file at the same time, which the lock on the data directory prevents.
package keyfile

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/freshet-io/freshet"
)

// Name is what the file is called in a data directory.
const Name = "secret.key"

// Keys are what a file holds.
type Keys struct {
	Current []byte

	// Previous is there from the beginning of a rotation to its end: it opens what Current has not sealed yet.
	Previous [][]byte
}

// secretBytes is as long as the hash of HS256.
const secretBytes = 32

// New returns a secret that nobody knows.
func New() []byte {
	secret := make([]byte, secretBytes)
	rand.Read(secret)
	return secret
}

const (
	heading  = "# The secret of a Freshet installation: it signs session tokens and seals credentials. Keep a copy of it, apart from\n# copies of the database. `freshet secrets rotate` replaces it.\n"
	current  = "current: "
	previous = "previous: "
)

// Read returns the keys of the file. Without one the error is fs.ErrNotExist.
func Read(path string) (Keys, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Keys{}, err
	}
	if err != nil {
		return Keys{}, freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf("The key file %s cannot be read: give it to the user that Freshet runs as", path))
	}
	k, ok := parse(string(raw))
	if !ok {
		return Keys{}, freshet.Errorf(freshet.Unavailable, "The key file %s is damaged: put a copy in its place", path)
	}
	return k, nil
}

func parse(text string) (k Keys, ok bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, _ := strings.Cut(line, " ")
		secret, err := base64.StdEncoding.DecodeString(value)
		switch {
		case err != nil || len(secret) < secretBytes:
			return Keys{}, false
		case name+" " == current && k.Current == nil:
			k.Current = secret
		case name+" " == previous:
			k.Previous = append(k.Previous, secret)
		default:
			return Keys{}, false
		}
	}
	return k, k.Current != nil
}

// Write puts the keys into the file for its owner alone. When it returns nil they are on disk.
func Write(path string, k Keys) error {
	text := bytes.NewBufferString(heading)
	fmt.Fprintf(text, "%s%s\n", current, base64.StdEncoding.EncodeToString(k.Current))
	for _, p := range k.Previous {
		fmt.Fprintf(text, "%s%s\n", previous, base64.StdEncoding.EncodeToString(p))
	}
	if err := replace(path, text.Bytes()); err != nil {
		return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf("The key file %s cannot be written (%v)", path, plain(err)))
	}
	return nil
}

// replace puts a whole new file in the place of the old one, and returns once the disk has both its bytes and its name.
func replace(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(content); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Tighten takes the right to read the file from everybody but its owner, and reports whether somebody had it.
func Tighten(path string) (exposed bool, err error) {
	exposed, err = Exposed(path)
	if err == nil && exposed {
		err = os.Chmod(path, 0o600)
	}
	return exposed, err
}

// plain is what the operating system said, without the path that the message names already.
func plain(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
