package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// profile takes a CPU profile during the window, if the flag asks for it and the server has any. It returns when to go on.
func (b *bench) profile(ctx context.Context, e *endpoint, name string) (wait func()) {
	if b.opts.profiles == "" || e.admin == "" || name == "" {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", e.admin, max(1, int(b.opts.window.Seconds())))
		if err := download(ctx, url, filepath.Join(b.opts.profiles, name+".pprof")); err != nil {
			b.say("    no profile: %v", err)
		}
	}()
	return func() { <-done }
}

// collectGarbage makes the memory that Freshet starts from as small as it gets, so that garbage of its start cannot hide what
// subscribers take. Nothing of the kind is done once they are there.
func (e *endpoint) collectGarbage(ctx context.Context) error {
	if e.admin == "" {
		return nil
	}
	for range 2 { // what has a finalizer goes in the second round
		if err := download(ctx, "http://"+e.admin+"/debug/pprof/heap?gc=1", os.DevNull); err != nil {
			return err
		}
	}
	return nil
}

func download(ctx context.Context, url, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(f, resp.Body)
	return err
}
