package store

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/freshet-io/freshet"
)

// Environment variables that name a data directory for which the test binary plays a server instead of running tests.
const (
	childWriter = "FRESHET_STORE_TEST_WRITER"
	childOpener = "FRESHET_STORE_TEST_OPENER"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childWriter); dir != "" {
		fmt.Fprintln(os.Stderr, writeForever(dir))
		os.Exit(1)
	}
	if dir := os.Getenv(childOpener); dir != "" {
		if err := openAndClose(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writeForever acknowledges on stdout, line by line, what it has written.
func writeForever(dir string) error {
	ctx := context.Background()
	s, err := Open(ctx, Location{Dir: dir})
	if err != nil {
		return err
	}
	user := newAccount(freshet.NewID() + "@example.com")
	app := newApp(user.ID, "burst")
	err = s.Update(ctx, func(tx *Tx) error {
		if err := tx.CreateUser(user); err != nil {
			return err
		}
		return tx.CreateApp(app)
	})
	if err != nil {
		return err
	}
	inParallel(3, func(int) {
		for {
			topic := newTopic(app.ID, "burst")
			if err := s.Update(ctx, func(tx *Tx) error { return tx.CreateTopic(topic) }); err != nil {
				panic(err)
			}
			fmt.Println(topic.ID)
		}
	})
	return nil
}

func TestAcknowledgedWritesSurviveKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	total := 0
	for round := range 8 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childWriter+"="+dir)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		var acked []string
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			acked = append(acked, lines.Text())
			if len(acked) == 1 {
				_, err := Open(t.Context(), Location{Dir: dir})
				wantSentence(t, err, freshet.Conflict, dir, fmt.Sprintf("(process %d)", child.Process.Pid))
			}
			if len(acked) == 10+23*round {
				if err := child.Process.Signal(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = child.Wait() // killed
		if len(acked) < 10 {
			t.Fatalf("the child wrote %d topics only", len(acked))
		}
		total += len(acked)
		wantSurvivors(t, dir, acked)
	}
	t.Logf("%d acknowledged topics, none lost", total)
}

func wantSurvivors(t *testing.T, dir string, acked []string) {
	t.Helper()
	var logs bytes.Buffer
	s, err := Open(t.Context(), Location{Dir: dir, Log: slog.New(slog.NewTextHandler(&logs, nil))}) // at once: the lock went with the process
	if err != nil {
		t.Fatal(err)
	}
	if logs.Len() > 0 {
		t.Errorf("a kill is no reason for alarm: %s", &logs)
	}
	for _, id := range acked {
		if _, err := s.Topic(t.Context(), id); err != nil {
			t.Errorf("acknowledged topic %s: %v", id, err)
		}
	}
	var verdict string
	if err := s.reader(t.Context()).row("PRAGMA integrity_check", nil, &verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity: %s, %v", verdict, err)
	}
	var wrong int64
	if err := s.reader(t.Context()).row(`SELECT count(*) FROM apps
		WHERE topic_count <> (SELECT count(*) FROM topics WHERE app_id = apps.id)`, nil, &wrong); err != nil || wrong != 0 {
		t.Errorf("%d apps have a wrong topic count, %v", wrong, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func openAndClose(dir string) error {
	s, err := Open(context.Background(), Location{Dir: dir})
	if err != nil {
		return err
	}
	if err := s.Ping(context.Background()); err != nil {
		return err
	}
	return s.Close()
}

// BenchmarkStart shows the processor time that a fresh process needs to open an existing data directory, with what
// any process of this binary needs taken off.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	if err := openAndClose(dir); err != nil {
		b.Fatal(err)
	}
	cpu := func(env ...string) float64 {
		child := exec.Command(os.Args[0], "-test.run=^$")
		child.Env = append(os.Environ(), env...)
		if out, err := child.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return float64((child.ProcessState.UserTime() + child.ProcessState.SystemTime()).Microseconds()) / 1000
	}
	var with, without float64
	n := 0
	for b.Loop() {
		with += cpu(childOpener + "=" + dir)
		without += cpu()
		n++
	}
	b.ReportMetric((with-without)/float64(n), "cpu-ms/open")
	b.ReportMetric(with/float64(n), "cpu-ms/process")
}
