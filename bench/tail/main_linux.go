package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/freshet-io/freshet/client"
)

func main() {
	rows := flag.Int("rows", 500, "rows of the document")
	rate := flag.Int("rate", 50, "changes a second")
	window := flag.Duration("window", 10*time.Second, "how long it is measured")
	flag.Parse()
	if err := run(*rows, *rate, *window); err != nil {
		log.Fatal("tail: ", err)
	}
}

func run(rows, rate int, window time.Duration) error {
	dir, err := os.MkdirTemp("", "tail")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "freshet")
	if out, err := exec.Command("go", "build", "-C", "..", "-o", binary, "./cmd/freshet").CombinedOutput(); err != nil {
		return fmt.Errorf("building freshet: %w\n%s", err, out)
	}
	server, err := startServer(binary, dir)
	if err != nil {
		return err
	}
	defer server.stop()
	p, err := newPublisher(server, rows)
	if err != nil {
		return err
	}
	watching, err := startTail(binary, dir, server, p.topic, p.app.SubscriberKey)
	if err != nil {
		return err
	}
	defer watching.stop()
	if err := p.publish(rate, 2*time.Second); err != nil { // to warm up
		return err
	}
	cpu, err := cpuTime(watching.cmd.Process.Pid)
	if err != nil {
		return err
	}
	drawn, began := watching.drawn.Load(), time.Now()
	if err := p.publish(rate, window); err != nil {
		return err
	}
	took := time.Since(began)
	now, err := cpuTime(watching.cmd.Process.Pid)
	if err != nil {
		return err
	}
	if watching.drawn.Load() == drawn {
		return errors.New("freshet tail has drawn nothing; there is nothing to measure")
	}
	fmt.Printf("%d rows, %d changes a second, %d kB drawn: %.1f %% of one core\n",
		rows, rate, (watching.drawn.Load()-drawn)/1000, 100*(now-cpu).Seconds()/took.Seconds())
	return nil
}

// publisher changes one document.
type publisher struct {
	c     *client.Client
	app   *client.App
	topic string
	rows  []row
	n     int
}

type row struct {
	ID     int     `json:"id"`
	Symbol string  `json:"symbol"`
	Bid    float64 `json:"bid"`
	Ask    float64 `json:"ask"`
	Volume int     `json:"volume"`
}

func newPublisher(s *server, rows int) (*publisher, error) {
	c, err := client.New(client.Options{BaseURL: s.gateway, SubscriberURL: s.subscriber})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if _, err := c.SignIn(ctx, "admin@freshet.local", "freshet-admin"); err != nil {
		return nil, err
	}
	name := "Watched"
	p := &publisher{c: c}
	if p.app, err = c.CreateApp(ctx, client.AppChange{Name: client.Set(name)}); err != nil {
		return nil, err
	}
	topic, err := c.CreateTopic(ctx, p.app.ID, client.NewTopic{Name: name, Publisher: client.NewPublisher{Type: "http-post"}})
	if err != nil {
		return nil, err
	}
	p.topic = topic.ID
	for i := range rows {
		p.rows = append(p.rows, row{ID: i, Symbol: fmt.Sprintf("SYM%d", i), Bid: float64(i), Ask: float64(i) + 0.5, Volume: 100 * i})
	}
	return p, p.publish(1, time.Second)
}

func (p *publisher) publish(rate int, d time.Duration) error {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
		p.n++
		p.rows[p.n*7%len(p.rows)].Bid += 0.25
		p.rows[p.n%min(10, len(p.rows))].Volume++ // one that can be seen
		document, err := json.Marshal(p.rows)
		if err != nil {
			return err
		}
		if _, err := p.c.Publish(context.Background(), p.topic, document, client.PublishOptions{Key: p.app.PublisherKey}); err != nil {
			return err
		}
	}
	return nil
}

// drain counts what is written to a terminal, as fast as a terminal would take it.
func drain(r io.Reader, count func(int)) {
	for buf := make([]byte, 64<<10); ; {
		n, err := r.Read(buf)
		count(n)
		if err != nil {
			return // the terminal is closed
		}
	}
}
