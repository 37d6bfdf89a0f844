package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
)

// What the origin says: the document to whoever does not have it, and "not modified" to the others.
var (
	document    = []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"1\"\r\nContent-Length: 11\r\n\r\n{\"price\":1}")
	notModified = []byte("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n")
)

// serveOrigin answers until its standard input ends.
func serveOrigin() error {
	listener, err := net.Listen("tcp4", "0.0.0.0:0") // every loopback address is a host
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go serve(conn)
	}
}

// serve reads requests no further than it must: to their empty line, looking for a condition.
func serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		conditional := false
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) <= 2 {
				break
			}
			conditional = conditional || bytes.HasPrefix(line, []byte("If-None-Match:"))
		}
		reply := document
		if conditional {
			reply = notModified
		}
		if _, err := conn.Write(reply); err != nil {
			return
		}
	}
}
