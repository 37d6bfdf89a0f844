package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// bench is one run of the benchmark.
type bench struct {
	opts     options
	progress io.Writer
	cores    int
	maxFiles uint64
	files    place // of the whole run

	// Set when first needed.
	freshetBinary string
	limitProgram  string
	nchanModule   string
}

// options are the flags.
type options struct {
	quick      bool
	repeat     int
	window     time.Duration
	warmUp     time.Duration
	inFlight   int
	only       string
	servers    string
	freshet    string
	idle       int
	idleFor    time.Duration
	slowBuffer int
	apart      bool
	out        string
	profiles   string
}

// contenders are the servers to compare, Freshet first.
var contenders = []*contender{
	{name: "Freshet", ready: buildFreshet, start: startFreshet, patches: true},
	{name: "Nchan", ready: nchanReady, start: startNchan},
	{name: "net/http", start: startNaive},
	{name: "Pushpin", ready: pushpinReady, start: startPushpin, lossy: true},
	{name: "limit, each", ready: buildLimit, start: startLimit("each"), limit: true},
	{name: limitOfFigures, ready: buildLimit, start: startLimit("waiting"), limit: true},
	{name: "limit, deep", ready: buildLimit, start: startLimit("deep"), limit: true},
	{name: limitOfBeats, ready: buildLimit, start: startLimit("beats"), limit: true, silent: true},
}

func newBench(opts options, progress io.Writer) (*bench, error) {
	cores, err := serverCores()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "freshet-fanout-")
	if err != nil {
		return nil, err
	}
	b := &bench{opts: opts, progress: progress, cores: runtime.NumCPU(), files: place{dir: dir}, freshetBinary: opts.freshet}
	if isApart() {
		b.cores = len(cores)
		if err := settleIn(); err != nil {
			b.close()
			return nil, err
		}
	}
	b.maxFiles = raiseFiles(uint64(opts.idle) + 1000)
	return b, nil
}

func (b *bench) close() { os.RemoveAll(b.files.dir) }

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// spareFiles is how many descriptors a server or the generator needs besides subscribers.
const spareFiles = 400

// fits reduces a number of subscribers to what the limit of open files allows.
func (b *bench) fits(subscribers int) int {
	return min(subscribers, max(100, int(b.maxFiles)-spareFiles))
}

// with starts a server, hands it to use and stops it.
func (b *bench) with(ctx context.Context, c *contender, at place, use func(*endpoint) error) error {
	var err error
	if at.dir, err = os.MkdirTemp(b.files.dir, "server-"); err != nil {
		return err
	}
	defer os.RemoveAll(at.dir)
	e, err := c.start(ctx, b, &at)
	if e != nil && e.process != nil {
		defer e.process.stop()
	}
	if err != nil {
		return fmt.Errorf("starting %s: %w", c.name, err)
	}
	if e.document != nil { // there shall be a document before anybody subscribes
		if err := publishFinal(ctx, e, newPayloads(at.payloadLen), 0); err != nil {
			return fmt.Errorf("first publication: %w", err)
		}
	}
	return use(e)
}
