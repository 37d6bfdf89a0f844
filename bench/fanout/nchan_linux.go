package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// nchanReady finds nginx with Nchan, or installs it from Debian's packages.
func nchanReady(b *bench) error {
	if b.nchanModule != "" {
		return nil
	}
	if err := b.needCommand("nginx", "nginx-light", "libnginx-mod-nchan"); err != nil {
		return err
	}
	found, _ := filepath.Glob("/usr/lib/nginx/modules/ngx_nchan_module.so")
	if len(found) == 0 {
		if err := b.install("nginx-light", "libnginx-mod-nchan"); err != nil {
			return err
		}
		if found, _ = filepath.Glob("/usr/lib/nginx/modules/ngx_nchan_module.so"); len(found) == 0 {
			return errors.New("nginx has no Nchan module")
		}
	}
	b.nchanModule = found[0]
	return nil
}

// nchanConfig follows the advice of the documentation: a worker per core, no access log, room for the messages in shared
// memory, and messages kept long enough that no subscriber misses one. The ping is what heartbeats are elsewhere.
const nchanConfig = `
load_module %[1]s;
daemon off;
user root;
worker_processes %[2]d;
worker_rlimit_nofile %[3]d;
pid %[4]s/nginx.pid;
error_log %[4]s/error.log warn;
events { worker_connections %[5]d; use epoll; multi_accept on; }
http {
  access_log off;
  tcp_nodelay on;
  keepalive_timeout 1h;
  keepalive_requests 1000000000;
  client_body_buffer_size 64k;
  client_body_temp_path %[4]s/body;
  proxy_temp_path %[4]s/proxy;
  fastcgi_temp_path %[4]s/fastcgi;
  uwsgi_temp_path %[4]s/uwsgi;
  scgi_temp_path %[4]s/scgi;
  nchan_shared_memory_size 512M;
  server {
    listen 127.0.0.1:%[6]d backlog=4096 reuseport;
    location = /pub {
      nchan_publisher;
      nchan_channel_id $args;
      nchan_message_buffer_length 1000;
      nchan_message_timeout 1m;
    }
    location = /sub {
      nchan_subscriber eventsource;
      nchan_channel_id $args;
      nchan_subscriber_first_message newest;
      nchan_eventsource_ping_interval %[7]d;
    }
  }
}
`

func startNchan(ctx context.Context, b *bench, at *place) (*endpoint, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(nchanConfig, b.nchanModule, b.cores, b.maxFiles, at.dir, max(1024, int(b.maxFiles)-100), ports[0], int(heartbeatEvery.Seconds()))
	file, err := at.write("nginx.conf", config)
	if err != nil {
		return nil, err
	}
	p, err := startProcess("nginx", "-p", at.dir, "-c", file, "-e", at.path("error.log"))
	if err != nil {
		return nil, err
	}
	address := loopback(ports[0])
	return &endpoint{
		publish:   address.String(),
		subscribe: address,
		topics:    at.makeTopics(func(name string) topic { return peerTopic("/pub?"+name, "/sub?"+name) }),
		process:   p,
	}, awaitPort(ctx, p, address.String())
}
