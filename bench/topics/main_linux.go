package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

var (
	counts  = flag.String("topics", "1000,10000,100000", "how many topics, one measurement each")
	rate    = flag.Int("rate", 1000, "publications a second")
	window  = flag.Duration("window", 20*time.Second, "how long it is measured; usage is written down every 10 s")
	senders = flag.Int("connections", 8, "connections that publish")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal("topics: ", err)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "topics")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "freshet")
	if out, err := exec.Command("go", "build", "-C", "..", "-o", binary, "./cmd/freshet").CombinedOutput(); err != nil {
		return fmt.Errorf("building freshet: %w\n%s", err, out)
	}
	fmt.Println("  topics   CPU µs a publication   p99 ms   statements a publication")
	for _, text := range strings.Split(*counts, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if err := measure(binary, filepath.Join(dir, text), n); err != nil {
			return err
		}
	}
	return nil
}

func measure(binary, dir string, topics int) error {
	p := &publisher{}
	if err := p.fill(dir, topics); err != nil {
		return fmt.Errorf("making topics: %w", err)
	}
	s, err := start(binary, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	p.url = s.gateway + "/publish/v1/topics/"
	if _, err := p.publish(topics, 0); err != nil { // so that all of them are known
		return err
	}
	if _, err := p.publish(5**rate, *rate); err != nil {
		return err
	}
	cpu, statements, err := s.state()
	if err != nil {
		return err
	}
	n := int(window.Seconds()) * *rate
	took, err := p.publish(n, *rate)
	if err != nil {
		return err
	}
	cpuNow, statementsNow, err := s.state()
	if err != nil {
		return err
	}
	slices.Sort(took)
	fmt.Printf("%8d %22.1f %8.2f %26.4f\n", topics, float64((cpuNow-cpu).Microseconds())/float64(n),
		float64(took[len(took)*99/100].Microseconds())/1000, (statementsNow-statements)/float64(n))
	return nil
}

// publisher publishes to topics in turn.
type publisher struct {
	topics []string
	key    string
	url    string
	sent   int
}

// fill makes the topics where the server will find them, which is faster than asking it for each.
func (p *publisher) fill(dir string, topics int) error {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Location{Dir: dir})
	if err != nil {
		return err
	}
	now := time.Now()
	user := store.Account{User: freshet.User{
		ID: freshet.NewID(), Email: "topics@example.com", FirstName: "T", LastName: "T", Language: "en_GB",
		Role: freshet.RoleUser, Status: freshet.StatusActive, Quotas: freshet.DefaultQuotas, CreatedAt: now, UpdatedAt: now,
	}, PasswordHash: "-"}
	app := freshet.App{
		ID: freshet.NewID(), UserID: user.ID, Name: "Topics", Quotas: freshet.DefaultQuotas, CreatedAt: now, UpdatedAt: now,
		SubscriberKey: freshet.NewKey(freshet.SubscriberKey), PublisherKey: freshet.NewKey(freshet.PublisherKey),
		SignatureKey: freshet.NewKey(freshet.SignatureKey),
	}
	p.key = app.PublisherKey.Reveal()
	err = db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.CreateUser(&user); err != nil {
			return err
		}
		if err := tx.CreateApp(&app); err != nil {
			return err
		}
		for i := range topics {
			t := freshet.Topic{ID: freshet.NewID(), AppID: app.ID, Name: "Topic " + strconv.Itoa(i), CreatedAt: now, UpdatedAt: now}
			t.Publisher.Type, t.Publisher.Payload.Type = freshet.HTTPPost, freshet.PayloadSnapshot
			if err := tx.CreateTopic(&t); err != nil {
				return err
			}
			p.topics = append(p.topics, t.ID)
		}
		return nil
	})
	return errors.Join(err, db.Close())
}

// publish sends so many publications, at a rate or, if that is 0, as fast as it can. It returns how long each took.
func (p *publisher) publish(n, rate int) ([]time.Duration, error) {
	took, errs := make([]time.Duration, n), make([]error, *senders)
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: *senders}}
	defer c.CloseIdleConnections()
	began := time.Now()
	var wg sync.WaitGroup
	for s := range *senders {
		wg.Go(func() {
			for i := s; i < n && errs[s] == nil; i += *senders {
				if rate > 0 {
					time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
				}
				sent := time.Now()
				errs[s] = p.post(c, p.sent+i)
				took[i] = time.Since(sent)
			}
		})
	}
	wg.Wait()
	p.sent += n
	return took, errors.Join(errs...)
}

func (p *publisher) post(c *http.Client, n int) error {
	body := fmt.Appendf(nil, `{"instrument":"EURUSD","bid":1.08%d,"n":%d}`, n%1000, n)
	r, err := http.NewRequest(http.MethodPost, p.url+p.topics[n%len(p.topics)], bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("X-Sd-Publisher-Key", p.key)
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("status %d: %s", answer.StatusCode, text)
	}
	return nil
}

// server is a running freshet.
type server struct {
	cmd            *exec.Cmd
	gateway, admin string
}

func start(binary, dir string) (*server, error) {
	s := &server{cmd: exec.Command(binary, "serve", "--data", dir, "--gateway-listen", "127.0.0.1:0", "--subscriber-listen", "127.0.0.1:0",
		"--admin-listen", "127.0.0.1:0", "--log-format", "json")}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		var line struct{ Msg, Gateway, Admin string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "ready" {
			s.gateway, s.admin = "http://"+line.Gateway, "http://"+line.Admin
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return s, nil
		}
	}
	s.stop()
	return nil, errors.New("the server did not become ready")
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// state is the processor time that the server has used, and the statements that its database was asked to run.
func (s *server) state() (cpu time.Duration, statements float64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	fields := strings.Fields(string(rest))
	for _, field := range fields[11:13] { // user and system time, in ticks of 10 ms
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	answer, err := http.Get(s.admin + "/metrics")
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "freshet_store_statements_total "); ok {
			statements, err = strconv.ParseFloat(value, 64)
		}
	}
	return cpu, statements, err
}
