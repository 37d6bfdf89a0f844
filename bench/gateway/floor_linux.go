package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
)

// floors are proxies that do less than a gateway has to, to show what the pieces cost that it is built from. Each is this
// program, run once more.
var floors = []struct {
	name  string
	serve func(l net.Listener, upstream string) error
}{
	{"Go, four system calls, no HTTP", serveBytes},
	{"net/http alone, no upstream", func(l net.Listener, _ string) error { return http.Serve(l, http.HandlerFunc(answerAlone)) }},
	{"ReverseProxy, no upstream", func(l net.Listener, upstream string) error { return http.Serve(l, reverseProxy(upstream, canned{})) }},
	{"ReverseProxy with its Transport", func(l net.Listener, upstream string) error {
		return http.Serve(l, reverseProxy(upstream, &http.Transport{MaxIdleConnsPerHost: 512}))
	}},
}

// floorMain serves one of the floors until it is killed.
func floorMain(name, address, upstream string) error {
	debug.SetGCPercent(1600) // no collections to speak of: the heap is tiny
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for _, f := range floors {
		if f.name == name {
			return f.serve(l, upstream)
		}
	}
	return fmt.Errorf("there is no %q", name)
}

// startFloors returns a contender for each.
func (b *bench) startFloors(ctx context.Context) (all []*contender, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, f := range floors {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		s, err := b.start(ctx, address, self, "floor", f.name, address, b.upstream)
		if err != nil {
			return nil, err
		}
		all = append(all, &contender{name: f.name, server: s, url: s.url + "/api-7/x"})
	}
	return all, nil
}

// serveBytes gives every client a connection to the upstream, and passes on what comes without understanding it, except
// for the ends of requests and answers.
func serveBytes(l net.Listener, upstream string) error {
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer client.Close()
			up, err := net.Dial("tcp", upstream)
			if err != nil {
				return
			}
			defer up.Close()
			buf := make([]byte, 4096)
			for pass(up, client, buf, 0) == nil && pass(client, up, buf, len(answerText)) == nil {
			}
		}()
	}
}

// pass copies a header and a body of the given length.
func pass(to io.Writer, from io.Reader, buf []byte, body int) error {
	n := 0
	for {
		m, err := from.Read(buf[n:])
		if err != nil {
			return err
		}
		n += m
		if end := bytes.Index(buf[:n], []byte("\r\n\r\n")); end >= 0 && n >= end+4+body {
			_, err := to.Write(buf[:n])
			return err
		}
	}
}

func answerAlone(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = []string{"application/json"}
	_, _ = io.WriteString(w, answerText)
}

func reverseProxy(upstream string, transport http.RoundTripper) http.Handler {
	u := &url.URL{Scheme: "http", Host: upstream}
	return &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u); r.SetXForwarded() }}
}

// canned is a transport that costs nothing.
type canned struct{}

// RoundTrip implements http.RoundTripper.
func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(answerText)),
		Header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {fmt.Sprint(len(answerText))}},
		Body:   io.NopCloser(strings.NewReader(answerText))}, nil
}
