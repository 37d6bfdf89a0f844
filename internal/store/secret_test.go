package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

func TestASecretIsReplacedAndRemoved(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		for _, value := range []string{"one", "two"} {
			update(t, s, func(tx *Tx) error { return tx.SaveSecret("name", []byte(value)) })
			if got, err := s.Secret(t.Context(), "name"); err != nil || string(got) != value {
				t.Errorf("%s, %v", got, err)
			}
		}
		for range 2 {
			if err := s.EraseSecret(t.Context(), "name"); err != nil {
				t.Fatal(err)
			}
			_, err := s.Secret(t.Context(), "name")
			wantKind(t, err, freshet.NotFound)
		}
		if err := s.Compact(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAnErasedSecretIsInNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Location{Dir: dir, checkpointAfter: time.Hour})
	household(t, s, "ada@example.com")
	const value, inBase64 = "canary-canary-canary", "Y2FuYXJ5LWNhbmFyeS1jYW5hcnk"
	in := func() (files []string) {
		all, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(all) < 2 {
			t.Fatal(all, err)
		}
		for _, file := range all {
			if raw, err := os.ReadFile(file); err != nil || bytes.Contains(raw, []byte(inBase64)) {
				files = append(files, filepath.Base(file))
			}
		}
		return files
	}
	update(t, s, func(tx *Tx) error { return tx.SaveSecret("token", []byte(value)) })
	if err := s.pragma(t.Context(), "wal_checkpoint(PASSIVE)"); err != nil { // so that it is in both files
		t.Fatal(err)
	}
	if found := in(); len(found) != 2 {
		t.Fatalf("the test does not see it: %v", found)
	}
	if err := s.EraseSecret(t.Context(), "token"); err != nil {
		t.Fatal(err)
	}
	if found := in(); len(found) != 0 {
		t.Errorf("it is left in %v", found)
	}
}
