package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freshet-io/freshet/internal/keyfile"
	"github.com/freshet-io/freshet/internal/store"
)

func TestSecretsAreRotatedWhileNobodyUsesTheData(t *testing.T) {
	dir := t.TempDir()
	nowhere := freshetIn(t, nil, "secrets", "rotate", "--data", filepath.Join(dir, "nowhere"))
	if nowhere.code != 4 || !strings.Contains(nowhere.stderr, "no database") {
		t.Errorf("a directory without a database: %+v", nowhere)
	}
	db, err := store.Open(t.Context(), store.Location{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if busy := freshetIn(t, nil, "secrets", "rotate", "--data", dir); busy.code != 5 || !strings.Contains(busy.stderr, "in use by another freshet") {
		t.Errorf("a server runs: %+v", busy)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var last []byte
	for range 2 {
		got := freshetIn(t, nil, "secrets", "rotate", "--data", dir)
		if got.code != 0 || got.stdout != "sealed again: 0 topics\n" {
			t.Fatalf("%+v", got)
		}
		keys, err := keyfile.Read(filepath.Join(dir, keyfile.Name))
		if err != nil || bytes.Equal(keys.Current, last) || len(keys.Previous) > 0 {
			t.Errorf("%+v, %v", keys, err)
		}
		last = keys.Current
	}
}
