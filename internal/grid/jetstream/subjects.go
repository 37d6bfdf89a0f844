package jetstream

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/freshet-io/freshet/internal/grid"
)

// Subjects of the servers, all below the prefix. In streams are:
//
//	doc.<shard>.<topic>                 the newest document of a topic
//	part.<shard>.<topic>.<ref>.<n>      what does not fit into its message
//	beat.<shard>.<node>                 heartbeats and proofs of a node
//	val.claim.<name>  val.count.<name>  values and counters
//	note.<mark>                         notices
//
// The streams repeat doc below new and note below noted, to whoever listens. Nodes also say on node.all that they are there, on join.all
// which topics they have subscribers of, on who.all that they want to hear that, and listen on here.<topic> and ask.<node>.<name>.

// subject returns the subject of a kind.
func (l *link) subject(kind string, rest ...string) string {
	return l.prefix + "." + kind + "." + strings.Join(rest, ".")
}

func (l *link) docSubject(topic string) string {
	return l.subject("doc", shardToken(shardOf(topic)), token(topic))
}

func (l *link) newSubject(topic string) string {
	return l.subject("new", shardToken(shardOf(topic)), token(topic))
}

// shardIn returns the token of the shard in the subject of a document.
func (l *link) shardIn(docSubject string) string {
	shard, _, _ := strings.Cut(strings.TrimPrefix(docSubject, l.subject("doc", "")), ".")
	return shard
}

// shards is into how many parts topics are divided, so that streams can be split without renaming subjects.
const shards = 256

func shardOf(topic string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(topic))
	return h.Sum32() % shards
}

func shardToken(shard uint32) string { return fmt.Sprintf("%02x", shard) }

// token makes a name safe to stand in a subject. Names of topics are so already.
func token(name string) string {
	safe := name != "" && len(name) <= 64
	for i := range len(name) {
		c := name[i]
		safe = safe && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_')
	}
	if safe {
		return name
	}
	return "=" + grid.Digest(name)
}

// lastToken is what stands behind the last dot.
func lastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }
