package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

// childDisk names a directory on which the test binary mounts a small disk instead of running tests.
const childDisk = "FRESHET_STORE_TEST_DISK"

func init() {
	dir := os.Getenv(childDisk)
	if dir == "" {
		return
	}
	if err := onASmallDisk(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestAFullDiskIsSaidAndRecoversByItself runs on a real file system of one megabyte, which a child mounts in a namespace of its own.
func TestAFullDiskIsSaidAndRecoversByItself(t *testing.T) {
	t.Parallel()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDisk+"="+t.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if id := os.Geteuid(); id != 0 {
		child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n(it needs mount namespaces: run it as root, or allow user namespaces)", err, out)
	}
}

// smallDisk is the scene of the test above.
type smallDisk struct {
	dir  string
	logs *bytes.Buffer
}

func onASmallDisk(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("keep mounts to ourselves: %w", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		return fmt.Errorf("mount a small disk: %w", err)
	}
	d := &smallDisk{dir: dir, logs: &bytes.Buffer{}}
	for _, step := range []func(context.Context) error{d.startOnAFullDisk, d.fillWhileRunning, d.startAgainOnAFullDisk, d.turnReadOnly} {
		if err := step(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

func (d *smallDisk) open(ctx context.Context) (*Store, error) {
	// Without checkpoints, which would fail and be counted too.
	return Open(ctx, Location{Dir: d.dir, Log: slog.New(slog.NewTextHandler(d.logs, nil)), checkpointAfter: time.Hour})
}

// fill leaves no byte, as dd would.
func (d *smallDisk) fill() error {
	f, err := os.Create(filepath.Join(d.dir, "ballast"))
	if err != nil {
		return err
	}
	for size := 64 << 10; size > 0; size /= 2 {
		for {
			if _, err = f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
	return f.Close()
}

func (d *smallDisk) makeRoom() error { return os.Remove(filepath.Join(d.dir, "ballast")) }

func (d *smallDisk) startOnAFullDisk(ctx context.Context) error {
	if err := d.fill(); err != nil {
		return err
	}
	_, err := d.open(ctx)
	if err := wantText("starting on a full disk", err, "The disk of the data directory "+d.dir+" is full"); err != nil {
		return err
	}
	return d.makeRoom()
}

func (d *smallDisk) fillWhileRunning(ctx context.Context) error {
	s, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	user := newAccount("ada@example.com")
	app := newApp(user.ID, "burst")
	err = s.Update(ctx, func(tx *Tx) error { return errors.Join(tx.CreateUser(user), tx.CreateApp(app)) })
	if err != nil {
		return err
	}
	if note, err := s.Health(ctx); err != nil || !strings.Contains(note, "almost full") {
		return fmt.Errorf("a small disk with room: %q, %w", note, err)
	}
	if err := d.fill(); err != nil {
		return err
	}
	if _, err := s.Health(ctx); err == nil || err.Error() != "the disk of "+d.dir+" is full" {
		return fmt.Errorf("the health before anybody wrote: %w", err)
	}
	large := newTopic(app.ID, strings.Repeat("x", 200_000))
	for range 3 {
		err := s.Update(ctx, func(tx *Tx) error { return tx.CreateTopic(large) })
		if err := wantText("writing", err, "The disk is full"); err != nil {
			return err
		}
		if !freshet.IsLogged(err) || strings.Contains(strings.SplitN(err.Error(), ":", 2)[0], d.dir) {
			return fmt.Errorf("for everybody: %w", err)
		}
	}
	if n := strings.Count(d.logs.String(), "level=ERROR"); n != 1 || s.Failures().Full != 3 {
		return fmt.Errorf("%d lines are logged, and %d failures counted: %s", n, s.Failures().Full, d.logs)
	}
	if err := d.makeRoom(); err != nil {
		return err
	}
	if _, err := s.Health(ctx); err != nil { // nobody else has to write for that
		return fmt.Errorf("with room again: %w", err)
	}
	if !strings.Contains(d.logs.String(), "can be written again") {
		return fmt.Errorf("that it is well again is not logged: %s", d.logs)
	}
	return s.Update(ctx, func(tx *Tx) error { return tx.CreateTopic(large) })
}

func (d *smallDisk) startAgainOnAFullDisk(ctx context.Context) error {
	if err := d.fill(); err != nil {
		return err
	}
	s, err := d.open(ctx)
	if err == nil { // what it needs to open may fit into what the files have
		_, err = s.Health(ctx)
		_ = s.Close()
	}
	if err := wantText("starting again", err, "is full"); err != nil {
		return err
	}
	return d.makeRoom()
}

func (d *smallDisk) turnReadOnly(ctx context.Context) error {
	s, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	// Not a remount: files that are open for writing would keep the kernel from it.
	s.engine.health.disk.space = func(string) (Space, error) { return Space{Free: 1 << 30, Total: 1 << 30, ReadOnly: true}, nil }
	_, err = s.Health(ctx)
	return wantText("a read-only disk", err, "the disk of "+d.dir+" is read-only")
}

func wantText(what string, err error, text string) error {
	if err == nil || !strings.Contains(err.Error(), text) {
		return fmt.Errorf("%s: got %w, want %q", what, err, text)
	}
	return nil
}
