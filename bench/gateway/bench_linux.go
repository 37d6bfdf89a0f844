package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bench is one run.
type bench struct {
	// Static after flags.
	binary              string
	length              time.Duration
	rounds, connections int
	many                int
	profile             string
	floors              bool

	dir      string
	upstream string // host:port
	servers  []*server
}

// contender is a proxy with one way to call it.
type contender struct {
	name   string
	server *server
	url    string
	key    string // sent as apikey

	perSecond []float64 // requests per second of processor time, one for each round
	rate      []float64 // requests per second
}

func (b *bench) run(ctx context.Context) (err error) {
	for command, debian := range map[string]string{"nginx": "nginx-light", "wrk": "wrk"} {
		if err := need(command, debian); err != nil {
			return err
		}
	}
	if b.dir, err = os.MkdirTemp("", "freshet-bench-gateway-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	defer func() {
		for _, s := range b.servers {
			s.stop()
		}
	}()
	all, err := b.prepare(ctx)
	if err != nil {
		return err
	}
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, b.rounds)
		for _, c := range all {
			if err := b.measure(ctx, c); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	report(os.Stdout, all)
	return nil
}

// prepare starts everything and returns the contenders, nginx first.
func (b *bench) prepare(ctx context.Context) ([]*contender, error) {
	if err := b.build(); err != nil {
		return nil, err
	}
	if err := b.startUpstream(ctx); err != nil {
		return nil, err
	}
	peer, err := b.startNginx(ctx)
	if err != nil {
		return nil, err
	}
	few, err := b.startFreshet(ctx, "few", 10)
	if err != nil {
		return nil, err
	}
	many, err := b.startFreshet(ctx, "many", b.many)
	if err != nil {
		return nil, err
	}
	all := []*contender{
		{name: "nginx", server: peer, url: peer.url + "/api-7/x"},
		{name: "freshet", server: few, url: few.url + "/api-7/x"},
		{name: "freshet, key-auth + rate-limiting", server: few, url: few.url + "/guarded/x", key: "bench-key"},
		{name: fmt.Sprintf("freshet, %d APIs", b.many), server: many, url: fmt.Sprintf("%s/api-%d/x", many.url, b.many/2)},
	}
	if !b.floors {
		return all, nil
	}
	floors, err := b.startFloors(ctx)
	return append(all, floors...), err
}

// measure loads the contender once.
func (b *bench) measure(ctx context.Context, c *contender) error {
	if _, err := b.load(ctx, c, time.Second); err != nil { // connections, pools and heap find their size
		return err
	}
	profiled := make(chan error, 1)
	if b.profile != "" && c.name == "freshet" {
		go func() {
			profiled <- fetch(c.server.admin+fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(b.length.Seconds())), b.profile)
		}()
	} else {
		profiled <- nil
	}
	before, err := c.server.cpu()
	if err != nil {
		return err
	}
	start := time.Now()
	requests, err := b.load(ctx, c, b.length)
	if err != nil {
		return err
	}
	took := time.Since(start)
	after, err := c.server.cpu()
	if err != nil {
		return err
	}
	if after <= before {
		return fmt.Errorf("no processor time was measured in %s", took)
	}
	c.perSecond = append(c.perSecond, float64(requests)/(after-before).Seconds())
	c.rate = append(c.rate, float64(requests)/took.Seconds())
	return <-profiled
}

func fetch(url, file string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.Copy(out, resp.Body)
	return err
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// report prints a table; ratios are against the first contender, and "against few" compares many APIs with ten.
func report(w io.Writer, all []*contender) {
	base := median(all[0].perSecond)
	fmt.Fprintf(w, "%-36s %14s %8s %14s %12s\n", "", "req/CPU second", "ratio", "µs CPU/request", "req/second")
	for _, c := range all {
		per := median(c.perSecond)
		fmt.Fprintf(w, "%-36s %14.0f %8.2f %14.1f %12.0f\n", c.name, per, per/base, 1e6/per, median(c.rate))
	}
	few, many := all[1], all[3]
	fmt.Fprintf(w, "\n%s: %+.1f %% per request against 10\n", many.name, 100*(median(few.perSecond)/median(many.perSecond)-1))
}

// build builds the real binary from the repository that this benchmark lies in, unless one was given.
func (b *bench) build() error {
	if b.binary != "" {
		return nil
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/freshet-io/freshet").Output()
	if err != nil {
		return fmt.Errorf("finding the repository (run this with go -C bench run ./gateway): %w", err)
	}
	b.binary = filepath.Join(b.dir, "freshet")
	cmd := exec.Command("go", "build", "-trimpath", "-o", b.binary, "./cmd/freshet")
	cmd.Dir = strings.TrimSpace(string(root))
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building freshet: %w: %s", err, text)
	}
	return nil
}
