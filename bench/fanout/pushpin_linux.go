package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func pushpinReady(b *bench) error {
	for _, program := range []string{"pushpin", "condure", "zurl"} {
		if err := b.needCommand(program, "pushpin", "condure", "zurl"); err != nil {
			return err
		}
	}
	return nil
}

// pushpinConfig is the packaged configuration with other paths and ports, without the rate limit, which would lose
// messages, and without log lines per request. The workers are those of condure, which has two by default.
const pushpinConfig = `
[global]
include={libdir}/internal.conf
rundir=%[1]s/run
ipc_prefix=bench-
port_offset=0
stats_connection_ttl=120

[runner]
services=condure,zurl,pushpin-proxy,pushpin-handler
http_port=%[2]d
logdir=%[1]s/log
log_level=0
client_buffer_size=8192
client_maxconn=%[3]d
condure_bin=condure
zurl_bin=zurl

[proxy]
routesfile=routes
debug=false
auto_cross_origin=false
accept_x_forwarded_protocol=false
updates_check=off
zurl_out_specs=ipc://{rundir}/{ipc_prefix}zurl-in
zurl_out_stream_specs=ipc://{rundir}/{ipc_prefix}zurl-in-stream
zurl_in_specs=ipc://{rundir}/{ipc_prefix}zurl-out

[handler]
push_in_spec=tcp://127.0.0.1:%[4]d
push_in_http_addr=127.0.0.1
push_in_http_port=%[5]d
push_in_http_max_headers_size=10000
push_in_http_max_body_size=1000000
push_in_sub_specs=tcp://127.0.0.1:%[6]d
command_spec=tcp://127.0.0.1:%[7]d
message_rate=1000000000
message_hwm=1000000
message_wait=5000
id_cache_ttl=60
connection_subscription_max=20
`

func startPushpin(ctx context.Context, b *bench, at *place) (*endpoint, error) {
	ports, err := freePorts(5)
	if err != nil {
		return nil, err
	}
	backend, err := serveGrip()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Mkdir(at.path("run"), 0o755), os.Mkdir(at.path("log"), 0o755)); err != nil {
		return nil, err
	}
	// Every service opens the limit's number of files at most, and some for itself.
	config := fmt.Sprintf(pushpinConfig, at.dir, ports[0], min(50_000, int(b.maxFiles)-500), ports[1], ports[2], ports[3], ports[4])
	file, err := at.write("pushpin.conf", config)
	if err != nil {
		return nil, err
	}
	if _, err := at.write("routes", "* "+backend+"\n"); err != nil {
		return nil, err
	}
	p, err := startProcess("pushpin", "--config", file, "--loglevel", "0", "--merge-output")
	if err != nil {
		return nil, err
	}
	address := loopback(ports[0])
	e := &endpoint{
		publish:   loopback(ports[2]).String(),
		subscribe: address,
		topics:    []topic{{request: getRequest("/sub", ""), appendPublication: appendItem}},
		parallel:  16, // it answers many at once by 502
		process:   p,
	}
	if err := awaitPort(ctx, p, e.publish); err != nil {
		return e, err
	}
	if err := awaitPort(ctx, p, address.String()); err != nil {
		return e, err
	}
	return e, awaitAnswer(ctx, p, "http://"+address.String()+"/sub")
}

// awaitAnswer waits until a subscriber would be answered: the parts of Pushpin take a moment to find each other.
func awaitAnswer(ctx context.Context, p *process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(resp.Status)
		}
		if sleep(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("no stream: %w; the server says: %s", err, p.output())
		}
	}
}

// appendItem wraps the event into the JSON that Pushpin's control port takes: the payload's quotes are quoted once more.
func appendItem(dst, payload []byte) []byte {
	quoted := bytes.ReplaceAll(payload, []byte(`"`), []byte(`\"`))
	const head = "POST /publish/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	return appendPost(dst, head, []byte(`{"items":[{"channel":"bench","formats":{"http-stream":{"content":"data: {\"live\":`),
		quoted, []byte(`}\n\n"}}}]}`))
}

// serveGrip is the backend that tells Pushpin to hold every request open. It lives until the benchmark ends.
func serveGrip() (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	keepAlive := fmt.Sprintf(`:\n\n; format=cstring; timeout=%d`, int(heartbeatEvery.Seconds()))
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Content-Type", "text/event-stream")
			h.Set("Grip-Hold", "stream")
			h.Set("Grip-Channel", "bench")
			h.Set("Grip-Keep-Alive", keepAlive)
			_, _ = w.Write([]byte(":\n\n")) // without it, Pushpin holds the header back too
		}))
	}()
	return strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1), nil
}
