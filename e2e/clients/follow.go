package main

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	r3labs "github.com/r3labs/sse/v2"
	gosse "github.com/tmaxmax/go-sse"
	"gopkg.in/cenkalti/backoff.v1"
)

// again is how soon the clients that leave reconnecting to their caller are called again.
const again = 200 * time.Millisecond

func followWithGoSSE(url string, f *follower) {
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		f.fail(err)
		return
	}
	connection := gosse.NewConnection(request)
	connection.SubscribeToAll(func(e gosse.Event) {
		if e.Data == "" {
			return // advice when to come back, which this client takes for an event
		}
		if err := f.see(e.Type, []byte(e.Data)); err != nil {
			f.fail(err)
		}
	})
	f.fail(connection.Connect()) // it reconnects by itself, for ever
}

// followWithR3Labs calls again when a stream has ended, which this client leaves to its caller. When a connection breaks it
// hands over the piece of an event that came before as if it were whole; such pieces are passed over.
func followWithR3Labs(url string, f *follower) {
	client := r3labs.NewClient(url)
	client.ReconnectStrategy = &backoff.StopBackOff{}
	for ; ; time.Sleep(again) {
		_ = client.SubscribeRaw(func(e *r3labs.Event) {
			if err := f.see(string(e.Event), e.Data); err != nil && !errors.Is(err, errBroken) {
				f.fail(err)
			}
		})
	}
}

// followWithCurl is the loop that people write around curl.
func followWithCurl(url string, f *follower) {
	id := ""
	for ; ; time.Sleep(again) {
		args := []string{"-sN", url}
		if id != "" {
			args = append(args, "-H", "Last-Event-ID: "+id)
		}
		curl := exec.Command("curl", args...)
		curl.Stderr = os.Stderr
		out, err := curl.StdoutPipe()
		if err == nil {
			err = curl.Start()
		}
		if err != nil {
			f.fail(err)
			return
		}
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 4<<20)
		fields := map[string]string{}
		for lines.Scan() {
			if name, value, ok := strings.Cut(lines.Text(), ": "); ok {
				fields[name] = value
				continue
			}
			if lines.Text() == "" && fields["data"] != "" { // the line that ends an event
				if err := f.see(fields["event"], []byte(fields["data"])); err != nil {
					f.fail(err)
				}
				if fields["id"] != "" {
					id = fields["id"]
				}
			}
			if lines.Text() == "" {
				fields = map[string]string{}
			}
		}
		_ = curl.Wait() // it says how the stream ended, which is no news
	}
}
