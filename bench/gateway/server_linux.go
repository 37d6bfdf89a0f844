package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a running proxy.
type server struct {
	url   string
	admin string
	cmd   *exec.Cmd
	log   bytes.Buffer
}

// start runs a server in a process group of its own and waits until it answers at the address.
func (b *bench) start(ctx context.Context, address, name string, args ...string) (*server, error) {
	s := &server{url: "http://" + address, cmd: exec.Command(name, args...)}
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	b.servers = append(b.servers, s)
	for range 200 {
		if conn, err := net.Dial("tcp", address); err == nil {
			return s, conn.Close()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil, errors.New(name + " did not start")
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { _ = s.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-done
	}
}

// cpu is the processor time of the server's processes so far.
func (s *server) cpu() (total time.Duration, err error) {
	pids := []string{strconv.Itoa(s.cmd.Process.Pid)}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%s/task/%s/children", pids[0], pids[0]))
	if err == nil {
		pids = append(pids, strings.Fields(string(children))...)
	}
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return 0, err
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, field := range fields[11:13] { // user, system
			ticks, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, err
			}
			total += time.Duration(ticks) * time.Second / 100
		}
	}
	return total, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

const nginxConfig = `daemon off; worker_processes %d; error_log stderr crit; pid %s/nginx.pid;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 300s; tcp_nodelay on;
  client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/f; uwsgi_temp_path %[2]s/u; scgi_temp_path %[2]s/s;
  %[3]s
}
`

func (b *bench) nginx(ctx context.Context, name string, workers int, config func(address string) string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfig, workers, dir, config(address)), 0o644); err != nil {
		return nil, err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil { // workers run as another user
		return nil, err
	}
	return b.start(ctx, address, "nginx", "-p", dir, "-c", file, "-e", "stderr")
}

// answerText is what the upstream says: half a kilobyte.
var answerText = `{"quote":"` + strings.Repeat("x", 500) + `"}`

// startUpstream answers from memory.
func (b *bench) startUpstream(ctx context.Context) error {
	s, err := b.nginx(ctx, "upstream", 1, func(address string) string {
		return fmt.Sprintf(`server { listen %s; location / { default_type application/json; return 200 '%s'; } }`, address, answerText)
	})
	if err == nil {
		b.upstream = strings.TrimPrefix(s.url, "http://")
	}
	return err
}

// startNginx forwards with kept connections and the usual forwarding headers.
func (b *bench) startNginx(ctx context.Context) (*server, error) {
	return b.nginx(ctx, "peer", 2, func(address string) string {
		return fmt.Sprintf(`upstream up { server %s; keepalive 128; keepalive_requests 1000000000; }
  server { listen %s; location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_set_header Host $proxy_host; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme; } }`, b.upstream, address)
	})
}

// startFreshet runs Freshet with its defaults and registers APIs, one of them guarded.
func (b *bench) startFreshet(ctx context.Context, name string, apis int) (*server, error) {
	var addresses [3]string
	for i := range addresses {
		var err error
		if addresses[i], err = freeAddress(); err != nil {
			return nil, err
		}
	}
	s, err := b.start(ctx, addresses[0], b.binary, "serve", "--data", filepath.Join(b.dir, name), "--gateway-listen", addresses[0],
		"--admin-listen", addresses[1], "--subscriber-listen", addresses[2])
	if err != nil {
		return nil, err
	}
	s.admin = "http://" + addresses[1]
	if err := s.awaitReady(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	for i := range apis {
		if err := s.post("/apis/", "name", fmt.Sprint("api-", i), "request_path", fmt.Sprint("/api-", i), "upstream_url", "http://"+b.upstream); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(os.Stderr, "registered %d APIs in %.1f s\n", apis, time.Since(start).Seconds())
	for _, call := range [][]string{
		{"/apis/", "name", "guarded", "request_path", "/guarded", "upstream_url", "http://" + b.upstream},
		{"/apis/guarded/plugins", "name", "key-auth"},
		{"/apis/guarded/plugins", "name", "rate-limiting", "config.minute", "1000000000"},
		{"/consumers/", "username", "bench"},
		{"/consumers/bench/key-auth", "key", "bench-key"},
	} {
		if err := s.post(call[0], call[1:]...); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *server) awaitReady(ctx context.Context) error {
	for {
		resp, err := http.Get(s.admin + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// post calls the administration.
func (s *server) post(path string, fields ...string) error {
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	resp, err := http.PostForm(s.admin+path, form)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s answered %s: %s", path, resp.Status, &text)
	}
	return nil
}
