package server

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	api "github.com/freshet-io/freshet/client"
)

// silence is how long an answer may take. Where the servers answer less than expect thinks, it is waited for in vain.
const silence = time.Second

// reset gives the topic a document that it never had, and remembers its version.
func (s *side) reset() {
	s.resets++
	s.document = fmt.Sprintf(`{"reset":%d}`, 7700000+s.resets)
	published, err := s.client.Publish(context.Background(), s.topic, []byte(s.document), api.PublishOptions{Key: s.key})
	s.must(err)
	epoch, version, _ := strings.Cut(published.Version, "-")
	s.epoch = epoch
	s.version, _ = strconv.ParseInt(version, 10, 64)
}

// must ends everything where the test itself fails. It may be called in any goroutine, and while the fuzzer runs.
func (s *side) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("%s: %v", s.name, err))
	}
}

// follow keeps a subscriber at the topic, so that those who come find others.
func (s *side) follow() (stop func()) {
	conn, err := net.Dial("tcp", s.subscriber)
	s.must(err)
	_, _ = io.WriteString(conn, "GET /v1/topics/"+s.topic+" HTTP/1.1\r\nHost: x\r\n\r\n")
	in := bufio.NewReader(conn)
	_, err = in.Peek(1)
	s.must(err)
	go io.Copy(io.Discard, in)
	return func() { conn.Close() }
}

// exchange is one connection, and what was seen of it.
type exchange struct {
	*side
	conn     *net.TCPConn
	in       *bufio.Reader
	toStream bool // to the subscriber listener
	answered int
	silent   bool // the server said nothing when it should, and was told that nothing more comes
	over     bool // nothing more can be read, or is
	seen     strings.Builder
}

// exchange has a connection with the server and returns everything that can be seen of it.
func (s *side) exchange(c connection) string {
	version, epoch := s.version, s.epoch
	usesTopic := strings.Contains(c.sent, "{topic}")
	if usesTopic {
		s.reset()
		version, epoch = s.version, s.epoch
	}
	before := s.resets
	x := &exchange{side: s, toStream: c.toSubscriber}
	x.dial()
	x.converse(c)
	_ = x.conn.Close()
	for _, r := range s.upstream.take() {
		fmt.Fprintln(&x.seen, "the upstream read", r)
	}
	if usesTopic {
		document, at, err := s.client.Document(context.Background(), s.topic)
		s.must(err)
		fmt.Fprintf(&x.seen, "the document is %.200q at %s\n", document, at)
	}
	return x.normal(before, epoch, version)
}

func (x *exchange) dial() {
	address := x.gateway
	if x.toStream {
		address = x.subscriber
	}
	conn, err := net.Dial("tcp", address)
	x.must(err)
	x.conn, x.in = conn.(*net.TCPConn), bufio.NewReader(conn)
}

// converse sends everything and reads all answers. A connection that is still open is asked for one more.
func (x *exchange) converse(c connection) {
	sent, due := "", expectation{}
	for i, step := range strings.Split(c.sent, "{await}") {
		step = x.replacer.Replace(step)
		sent += step
		x.send(step, c.cuts, i)
		due = expect(sent)
		for x.answered < len(due.methods) && !x.over {
			x.readAnswer(due.methods[x.answered])
		}
		if x.over {
			return
		}
	}
	switch due.end {
	case atRequest:
		x.probe()
	case inRequest:
		fmt.Fprintln(&x.seen, "half a request is left alone")
		_ = x.conn.CloseWrite()
	}
	for !x.over {
		x.readAnswer(due.next)
	}
}

// gap lets the server read what was sent before the rest comes. If it does not, it reads both at once, which is as good.
const gap = 100 * time.Microsecond

// send sends a text in as many segments as the cuts say.
func (x *exchange) send(text string, cuts uint64, step int) {
	if cuts > 0 && len(text) > 1 {
		chance := rand.New(rand.NewPCG(cuts, uint64(step)))
		for range 1 + chance.IntN(3) {
			at := chance.IntN(len(text))
			_, _ = io.WriteString(x.conn, text[:at]) // it may be refused before all was sent
			text = text[at:]
			if len(text) < 2 {
				break
			}
			time.Sleep(gap)
		}
	}
	_, _ = io.WriteString(x.conn, text)
}

// probe asks whether the server still takes requests.
func (x *exchange) probe() {
	request := "GET /" + x.api + "/probe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	if x.toStream {
		request = "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	}
	_, _ = io.WriteString(x.conn, request)
}

// readAnswer reads an answer to a request, with all that comes before it.
func (x *exchange) readAnswer(method string) {
	_ = x.conn.SetReadDeadline(time.Now().Add(silence))
	resp, err := http.ReadResponse(x.in, &http.Request{Method: method})
	if err != nil {
		x.end(err)
		return
	}
	x.describe(resp)
	switch {
	case strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") && method != http.MethodHead:
		x.readStream(resp)
	case resp.StatusCode >= http.StatusOK:
		body, err := readBody(resp)
		fmt.Fprintf(&x.seen, "    %d bytes: %.300q, broken: %t, trailers %q\n", len(body), body, err != nil, resp.Trailer)
		x.answered++
	case resp.StatusCode == http.StatusSwitchingProtocols:
		x.over = true
	}
}

// readBody reads a body as it was before it was compressed. One that lasts until the connection is closed has no end that could be missed.
func readBody(resp *http.Response) (body []byte, err error) {
	from := io.Reader(resp.Body)
	if resp.Header.Get("Content-Encoding") == "gzip" && resp.ContentLength != 0 && resp.Request.Method != http.MethodHead {
		if from, err = gzip.NewReader(from); err != nil {
			return nil, err
		}
	}
	body, err = io.ReadAll(from)
	if resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && errors.Is(err, syscall.ECONNRESET) {
		err = nil
	}
	return body, err
}

func (x *exchange) describe(resp *http.Response) {
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil && time.Since(date).Abs() < time.Hour {
		resp.Header.Set("Date", "now")
	}
	if resp.Header.Get("X-Ratelimit-Remaining-Minute") != "" {
		resp.Header.Set("X-Ratelimit-Remaining-Minute", "many")
	}
	fmt.Fprintf(&x.seen, "%s %s, length %d, coding %q, last: %t\n", resp.Proto, resp.Status, resp.ContentLength, resp.TransferEncoding, resp.Close)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		fmt.Fprintf(&x.seen, "    %s: %q\n", name, resp.Header[name])
	}
}

// end says how the connection ended. A reset is an end like any other: which of them a client sees that sent more than was read is chance.
func (x *exchange) end(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) && !x.silent {
		x.silent = true
		fmt.Fprintln(&x.seen, "then silence")
		_ = x.conn.CloseWrite()
		return
	}
	x.over = true
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		fmt.Fprintln(&x.seen, "then silence for good")
	case x.in.Buffered() > 0:
		rest, _ := x.in.Peek(x.in.Buffered())
		fmt.Fprintf(&x.seen, "then what is no answer: %.100q\n", rest)
	default:
		fmt.Fprintln(&x.seen, "then it is closed")
	}
}

// readStream reads a stream until it has the document of the beginning and the next one, or ends.
func (x *exchange) readStream(resp *http.Response) {
	x.over = true
	body := io.Reader(resp.Body)
	if resp.Header.Get("Content-Encoding") == "gzip" {
		zip, err := gzip.NewReader(body)
		if err != nil {
			fmt.Fprintln(&x.seen, "not compressed:", err)
			return
		}
		body = zip
	}
	var got strings.Builder
	buf := make([]byte, 4<<10)
	for range 2 {
		document := fmt.Sprintf(":%d}", 7700000+x.resets)
		for !strings.Contains(got.String(), document) {
			n, err := body.Read(buf)
			got.Write(buf[:n])
			if err != nil {
				fmt.Fprintf(&x.seen, "a stream: %q, and ends, silent: %t\n", got.String(), errors.Is(err, os.ErrDeadlineExceeded))
				return
			}
		}
		x.reset()
	}
	fmt.Fprintf(&x.seen, "a stream: %q\n", got.String())
}

// volatile is what differs from time to time.
var volatile = regexp.MustCompile(`(\\?"datetime\\?":\\?"|\\?"sessionId\\?":\\?"|\\?"timestamp\\?":)[^"\\}]*`)

// normal replaces what two servers cannot have in common.
func (x *exchange) normal(resets int, epoch string, version int64) string {
	_, port, _ := net.SplitHostPort(x.gateway)
	text := strings.NewReplacer(
		`["`+port+`"]`, `["port"]`,
		x.conn.LocalAddr().String(), "client", x.gateway, "gateway", x.subscriber, "subscriber", x.upstreamAddress, "upstream",
		fmt.Sprint(7700000+resets), "first", fmt.Sprint(7700000+resets+1), "second", fmt.Sprint(7700000+resets+2), "third",
	).Replace(x.seen.String())
	text = regexp.MustCompile(regexp.QuoteMeta(epoch)+`-(\d+)`).ReplaceAllStringFunc(text, func(position string) string {
		n, _ := strconv.ParseInt(position[len(epoch)+1:], 10, 64)
		return fmt.Sprintf("beginning+%d", n-version)
	})
	return volatile.ReplaceAllString(text, "$1")
}

// ending is where in a request a text ends.
type ending int

const (
	atRequest ending = iota // between two requests
	inRequest               // more has to come
	atLast                  // nothing more will be read: what came is malformed, or says that it is the last
)

// expectation is what net/http makes of a text. If the servers make something else of it, that only takes time.
type expectation struct {
	methods []string // of whole requests
	next    string   // method of what came of the next one
	end     ending
}

func expect(sent string) (e expectation) {
	text := strings.NewReader(sent)
	in := bufio.NewReader(text)
	for {
		for {
			next, err := in.Peek(1)
			if err != nil {
				return e
			}
			if next[0] != '\r' && next[0] != '\n' {
				break
			}
			_, _ = in.Discard(1) // empty lines are skipped, more or less of them
		}
		e.end, e.next = inRequest, ""
		if !strings.Contains(sent[len(sent)-text.Len()-in.Buffered():], "\r\n\r\n") {
			return e // who can tell what it will be
		}
		r, err := http.ReadRequest(in)
		if err == nil {
			e.next = r.Method
			_, err = io.Copy(io.Discard, r.Body)
		}
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
			return e
		case err != nil || r.Close:
			e.end = atLast
			return e
		}
		e.end, e.methods = atRequest, append(e.methods, r.Method)
	}
}
