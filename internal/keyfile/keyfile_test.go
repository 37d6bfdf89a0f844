package keyfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
)

func TestWhatIsWrittenIsReadBackByItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), Name)
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("without a file: %v", err)
	}
	for _, k := range []Keys{{Current: New()}, {Current: New(), Previous: [][]byte{New(), New()}}, {Current: New()}} {
		if err := Write(path, k); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path)
		if err != nil || !bytes.Equal(got.Current, k.Current) || len(got.Previous) != len(k.Previous) {
			t.Fatalf("%+v, %v", got, err)
		}
		for i := range k.Previous {
			if !bytes.Equal(got.Previous[i], k.Previous[i]) {
				t.Errorf("the previous key %d is another one", i)
			}
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("%d files are left, %v", len(files), err)
	}
}

func TestADamagedFileIsRefusedAndStaysAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), Name)
	good := "current: " + strings.Repeat("A", 43) + "=\n"
	for _, text := range []string{"", "\n", "garbage", good + good, good + "next: x\n", "current: QUJD\n", "previous: " + strings.Repeat("A", 43) + "=\n", good[:20]} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path)
		if freshet.KindOf(err) != freshet.Unavailable || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
		if left, _ := os.ReadFile(path); string(left) != text {
			t.Errorf("%q was touched", text)
		}
	}
	if err := os.WriteFile(path, []byte("# a comment\n\n"+good), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err != nil {
		t.Error(err)
	}
}

func TestAFileThatOthersCanReadIsTightened(t *testing.T) {
	path := filepath.Join(t.TempDir(), Name)
	if err := Write(path, Keys{Current: New()}); err != nil {
		t.Fatal(err)
	}
	if exposed, err := Tighten(path); exposed || err != nil {
		t.Errorf("a private file: %t, %v", exposed, err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		exposed, err := Tighten(path)
		info, _ := os.Stat(path)
		if !exposed || err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %o: %t, %v; now %o", mode, exposed, err, info.Mode().Perm())
		}
	}
}

func TestAFileThatCannotBeReplacedStaysAsItIs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	if err := os.MkdirAll(filepath.Join(path, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := Write(path, Keys{Current: New()})
	if freshet.KindOf(err) != freshet.Unavailable || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
}
