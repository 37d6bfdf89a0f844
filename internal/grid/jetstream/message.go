package jetstream

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// anySequence writes whatever is there.
const anySequence = ^uint64(0)

// minTTL is the shortest that a server takes; it counts in whole seconds.
const minTTL = time.Second

// write is a message to be stored.
type write struct {
	subject  string
	expected uint64 // the last sequence of the subject; 0: there is no message; anySequence: no matter
	checked  string // the subject that expected is about, if it is another one
	ttl      time.Duration
	header   [][2]string // in addition; empty values are left out
	body     []byte

	// How the writer finds out what became of it, if it gets no answer.
	mark     mark // the first one in the body
	replaces mark // of the message that is expected; 0 if there is none

	// newestOwn, unless nil, returns the mark of this node's newest write that a message tells of, if it does.
	newestOwn func(*message) (mark, bool)
}

func (w *write) message() *nats.Msg {
	msg := &nats.Msg{Subject: w.subject, Data: w.body, Header: nats.Header{}}
	if w.expected != anySequence {
		msg.Header["Nats-Expected-Last-Subject-Sequence"] = []string{strconv.FormatUint(w.expected, 10)}
	}
	if w.checked != "" {
		msg.Header["Nats-Expected-Last-Subject-Sequence-Subject"] = []string{w.checked}
	}
	if w.ttl > 0 {
		seconds := int64((max(w.ttl, minTTL) + time.Second - 1) / time.Second)
		msg.Header["Nats-TTL"] = []string{strconv.FormatInt(seconds, 10)}
	}
	for _, h := range w.header {
		if h[1] != "" {
			msg.Header[h[0]] = []string{h[1]}
		}
	}
	return msg
}

// message is one of a stream. The zero message means that there is none.
type message struct {
	subject string
	seq     uint64
	data    []byte

	// One of both: as the library gives them, or as they stand on the wire. Most are not needed and never taken apart.
	header nats.Header
	raw    []byte
}

// repeated is a message as a stream repeats it or sends it in a batch.
func repeated(msg *nats.Msg) message {
	seq, _ := strconv.ParseUint(msg.Header.Get("Nats-Sequence"), 10, 64)
	return message{subject: msg.Subject, seq: seq, data: msg.Data, header: msg.Header}
}

// headers are empty if they cannot be read.
func (m *message) headers() nats.Header {
	if m.header == nil && len(m.raw) > 0 {
		m.header, _ = nats.DecodeHeadersMsg(m.raw)
		m.raw = nil
	}
	return m.header
}
