package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/nats-io/nats.go"
)

// streamConfig is the part of a stream's configuration that the grid decides about.
type streamConfig struct {
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Subjects    []string     `json:"subjects"`
	Storage     string       `json:"storage"`
	Replicas    int          `json:"num_replicas"`
	Retention   string       `json:"retention"`
	Discard     string       `json:"discard"`
	MaxPer      int64        `json:"max_msgs_per_subject"`
	MaxMsgs     int64        `json:"max_msgs"`
	MaxBytes    int64        `json:"max_bytes"`
	AllowDirect bool         `json:"allow_direct"`
	AllowTTL    bool         `json:"allow_msg_ttl"`
	RePublish   *republished `json:"republish,omitempty"`
}

type republished struct {
	Src  string `json:"src"`
	Dest string `json:"dest"`
}

// Names of streams cannot have dots.
func (n *Grid) streamPrefix() string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(n.opts.Prefix))
}

func (n *Grid) valuesStream() string { return n.streamPrefix() + "_VALUES" }

func (n *Grid) docStream(i int) string {
	if n.opts.Streams == 1 {
		return n.streamPrefix() + "_DOCUMENTS"
	}
	return fmt.Sprintf("%s_DOCUMENTS_%d", n.streamPrefix(), i)
}

func (n *Grid) docStreams() []string {
	var all []string
	for i := range n.opts.Streams {
		all = append(all, n.docStream(i))
	}
	return all
}

// configs returns the streams that there must be.
func (n *Grid) configs(replicas int) []streamConfig {
	base := streamConfig{
		Storage: "file", Replicas: replicas, Retention: "limits",
		Discard: "new", // a full stream refuses; dropping the oldest would drop somebody's document
		MaxPer:  1, MaxMsgs: -1, MaxBytes: -1, AllowDirect: true, AllowTTL: true,
	}
	if n.opts.Memory {
		base.Storage = "memory"
	}
	values := base
	values.Name, values.Description = n.valuesStream(), "Freshet: claims, counters and notices"
	values.Subjects = []string{n.subject("val", ">"), n.subject("note", ">")}
	values.RePublish = &republished{n.subject("note", ">"), n.subject("noted", ">")}
	all := []streamConfig{values}
	for i := range n.opts.Streams {
		docs := base
		docs.Name, docs.Description = n.docStream(i), "Freshet: the newest document of each topic"
		docs.RePublish = &republished{n.subject("doc", ">"), n.subject("new", ">")}
		docs.Subjects = n.docSubjects(i)
		if n.opts.MaxBytes > 0 {
			docs.MaxBytes = n.opts.MaxBytes
		}
		all = append(all, docs)
	}
	return all
}

// docSubjects are the subjects of the i-th stream with documents.
func (n *Grid) docSubjects(i int) []string {
	if n.opts.Streams == 1 {
		return []string{n.subject("doc", ">"), n.subject("part", ">"), n.subject("beat", ">")}
	}
	var all []string
	for shard := range uint32(shards) {
		if int(shard)*n.opts.Streams/shards == i {
			for _, kind := range []string{"doc", "part", "beat"} {
				all = append(all, n.subject(kind, shardToken(shard), ">"))
			}
		}
	}
	return all
}

// ensureStreams makes the streams that are missing and refuses those that are not as they must be.
func (n *Grid) ensureStreams(ctx context.Context) error {
	replicas := n.opts.Replicas
	if replicas <= 0 {
		replicas = 1
		if n.conn.ConnectedClusterName() != "" {
			replicas = 3
		}
		if n.opts.Servers > 0 {
			replicas = min(replicas, n.opts.Servers)
		}
	}
	for _, config := range n.configs(replicas) {
		if err := n.ensureStream(ctx, &config); err != nil {
			return err
		}
	}
	return nil
}

func (n *Grid) ensureStream(ctx context.Context, want *streamConfig) error {
	for try := 0; ; try++ {
		have, err := n.streamInfo(ctx, want.Name)
		if hasCode(err, codeStreamNotFound) {
			have, err = n.createStream(ctx, want)
		}
		switch {
		case err == nil:
			return n.compare(want, have)
		case errors.Is(err, nats.ErrNoResponders) && n.conn.ConnectedClusterName() == "", isDisabled(err):
			return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf(
				"The NATS server at %s runs without JetStream: start it with -js, or with a jetstream block in its configuration", n.conn.ConnectedAddr()))
		case hasCode(err, codeOverlap):
			return freshet.Wrap(freshet.Conflict, err, fmt.Sprintf("The NATS stream %s cannot be made, because another stream has its subjects: grid.streams must be as "+
				"it was when the documents were stored, and the same on all nodes; or choose another nats_prefix", want.Name))
		case hasCode(err, codeReplicas):
			return n.notMade(want, err)
		case hasCode(err, codeStreamExists):
			// Another node was faster, with another configuration; compare says how they differ.
		}
		if try == 0 && !hasCode(err, codeStreamExists) {
			n.log.Warn("waiting for JetStream", "stream", want.Name, "err", err)
		}
		if !pause(ctx, 250*time.Millisecond) {
			return n.notMade(want, err)
		}
	}
}

func (n *Grid) notMade(want *streamConfig, err error) error {
	hint := "check that a majority of the servers runs"
	if want.Replicas > 1 {
		hint += fmt.Sprintf("; %d replicas need as many servers with JetStream, or set grid.replicas to 1", want.Replicas)
	}
	return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf("The stream %s cannot be made (%v): %s", want.Name, err, hint))
}

// Codes of "JetStream not enabled", for the server and for the account.
const (
	codeDisabled        = 10076
	codeAccountDisabled = 10039
)

func isDisabled(err error) bool {
	return hasCode(err, codeDisabled) || hasCode(err, codeAccountDisabled)
}

type streamAnswer struct {
	Error  *apiError    `json:"error"`
	Config streamConfig `json:"config"`
}

func (n *Grid) streamInfo(ctx context.Context, name string) (*streamConfig, error) {
	return n.streamCall(ctx, "STREAM.INFO."+name, nil)
}

func (n *Grid) createStream(ctx context.Context, want *streamConfig) (*streamConfig, error) {
	return n.streamCall(ctx, "STREAM.CREATE."+want.Name, want)
}

func (n *Grid) streamCall(ctx context.Context, name string, request any) (*streamConfig, error) {
	var answer streamAnswer
	if err := n.api(ctx, name, request, &answer); err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	return &answer.Config, nil
}

// compare says what is wrong with a stream that was there already.
func (n *Grid) compare(want, have *streamConfig) error {
	var differences []string
	differ := func(what string, want, have any) {
		if fmt.Sprint(want) != fmt.Sprint(have) {
			differences = append(differences, fmt.Sprintf("%s is %v, not %v", what, have, want))
		}
	}
	slices.Sort(want.Subjects)
	slices.Sort(have.Subjects)
	differ("storage", want.Storage, have.Storage)
	differ("retention", want.Retention, have.Retention)
	differ("discard", want.Discard, have.Discard)
	differ("max_msgs_per_subject", want.MaxPer, have.MaxPer)
	differ("allow_direct", want.AllowDirect, have.AllowDirect)
	differ("allow_msg_ttl", want.AllowTTL, have.AllowTTL)
	differ("max_bytes", want.MaxBytes, have.MaxBytes)
	if len(want.Subjects) != len(have.Subjects) || !slices.Equal(want.Subjects, have.Subjects) {
		differences = append(differences, "its subjects are others (grid.streams must be the same on all nodes)")
	}
	if have.RePublish == nil || *have.RePublish != *want.RePublish {
		differences = append(differences, "it republishes nothing, or something else")
	}
	if n.opts.Replicas > 0 {
		differ("num_replicas", n.opts.Replicas, have.Replicas)
	}
	if len(differences) == 0 {
		return nil
	}
	return freshet.Errorf(freshet.Conflict, "The NATS stream %s exists with other settings: %s. Change the settings of this node, edit the stream, "+
		"or choose another nats_prefix", want.Name, strings.Join(differences, "; "))
}
