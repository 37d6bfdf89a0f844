package store

import (
	"bytes"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
)

// youngDatabase makes one whose changes are all in its log, and returns a copy of its files as a crash would leave them.
func youngDatabase(t *testing.T) (dir string, topics int64, appID string) {
	t.Helper()
	from := t.TempDir()
	s := open(t, Location{Dir: from, checkpointAfter: time.Hour})
	_, app, _ := household(t, s, "ada@example.com")
	for range 50 {
		update(t, s, func(tx *Tx) error { return tx.CreateTopic(newTopic(app.ID, "burst")) })
	}
	dir = t.TempDir()
	for _, name := range []string{databaseFile, databaseFile + "-wal", databaseFile + "-shm"} {
		raw, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir, 51, app.ID
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestALogThatWasCutIsSaid(t *testing.T) {
	t.Parallel()
	const said = "acknowledged changes are missing"
	for _, c := range []struct {
		name string
		harm func(t *testing.T, wal string) error
		want bool
	}{
		{"a crash", func(*testing.T, string) error { return nil }, false},
		{"a crash in the middle of a write", func(_ *testing.T, wal string) error {
			f, err := os.OpenFile(wal, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Write(make([]byte, 3000))
			return err
		}, false},
		{"half of it is there", func(t *testing.T, wal string) error { return os.Truncate(wal, sizeOf(t, wal)/2) }, true},
		{"its last byte is not there", func(t *testing.T, wal string) error { return os.Truncate(wal, sizeOf(t, wal)-1) }, true},
		{"it is empty", func(_ *testing.T, wal string) error { return os.Truncate(wal, 0) }, true},
		{"a page in the middle changed", func(t *testing.T, wal string) error {
			f, err := os.OpenFile(wal, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte("changed"), sizeOf(t, wal)/2)
			return err
		}, true},
		{"the index is not there: nothing can be known", func(t *testing.T, wal string) error {
			if err := os.Remove(strings.TrimSuffix(wal, "-wal") + "-shm"); err != nil {
				return err
			}
			return os.Truncate(wal, sizeOf(t, wal)/2)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, topics, app := youngDatabase(t)
			if err := c.harm(t, filepath.Join(dir, databaseFile+"-wal")); err != nil {
				t.Fatal(err)
			}
			var logs bytes.Buffer
			s, err := Open(t.Context(), Location{Dir: dir, Log: slog.New(slog.NewTextHandler(&logs, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got := strings.Contains(logs.String(), said); got != c.want {
				t.Errorf("it is said: %t, want %t: %s", got, c.want, &logs)
			}
			if list, err := s.Topics(t.Context(), app, Page{Limit: 100}); !c.want && !strings.Contains(c.name, "nothing can be known") && (err != nil || list.Total != topics) {
				t.Errorf("%d topics of %d, %v", list.Total, topics, err)
			} else if c.want && err == nil && list.Total == topics {
				t.Error("nothing is missing, so the test shows nothing")
			} else if err != nil && freshet.KindOf(err) != freshet.NotFound {
				t.Error(err)
			}
		})
	}
}

func TestChangesReachTheDatabaseFileSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, databaseFile)
		s := open(t, Location{Dir: dir})
		_, app, _ := household(t, s, "ada@example.com")
		for range 2 { // soon after the first changes, and soon after those that follow
			before := sizeOf(t, path)
			update(t, s, func(tx *Tx) error { return tx.CreateTopic(newTopic(app.ID, strings.Repeat("x", 20_000))) })
			if sizeOf(t, path+"-wal") == 0 {
				t.Fatal("the change is not in the log, so the test shows nothing")
			}
			time.Sleep(2 * checkpointAfter)
			synctest.Wait()
			if after, log := sizeOf(t, path), sizeOf(t, path+"-wal"); after <= before || log != 0 {
				t.Errorf("the file has %d bytes, before %d; the log %d", after, before, log)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestACheckpointWaitsForNoReader(t *testing.T) {
	t.Parallel()
	s := open(t, Location{Dir: t.TempDir(), checkpointAfter: time.Hour})
	_, app, _ := household(t, s, "ada@example.com")
	reading, err := s.read.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reading.QueryRowContext(t.Context(), "SELECT count(*) FROM topics").Scan(&n); err != nil {
		t.Fatal(err)
	}
	update(t, s, func(tx *Tx) error { return tx.CreateTopic(newTopic(app.ID, "while somebody reads")) })
	if all, err := s.checkpoint(t.Context()); all || err != nil {
		t.Errorf("while somebody reads: %t, %v", all, err)
	}
	if err := reading.Rollback(); err != nil {
		t.Fatal(err)
	}
	if all, err := s.checkpoint(t.Context()); !all || err != nil {
		t.Errorf("after that: %t, %v", all, err)
	}
	var patience string
	if err := s.write.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&patience); err != nil || patience != "5000" {
		t.Errorf("the writer waits %s ms for strangers, %v", patience, err)
	}
}

func TestStoppingLeavesOneFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Location{Dir: dir})
	household(t, s, "ada@example.com")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(filepath.Join(dir, databaseFile+suffix)); err == nil {
			t.Errorf("%s is left", suffix)
		}
	}
}
