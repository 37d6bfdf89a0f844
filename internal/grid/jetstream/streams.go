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

// streams are those that the grid stands on: one with values, counters and notices, and one or more with documents.
type streams struct {
	link      *link
	opts      *Options
	values    *stream
	documents []*stream // a topic is in that of its shard
}

func newStreams(l *link, opts *Options) *streams {
	// Names of streams cannot have dots.
	prefix := strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(opts.Prefix))
	all := &streams{link: l, opts: opts}
	all.values = &stream{link: l, name: prefix + "_VALUES", proof: func(string) string { return l.subject("val", "proof", l.node) }}
	for i := range opts.Streams {
		name := prefix + "_DOCUMENTS"
		if opts.Streams > 1 {
			name = fmt.Sprintf("%s_%d", name, i)
		}
		first := shardToken(uint32(i * shards / opts.Streams))
		all.documents = append(all.documents, &stream{
			link: l, name: name, beat: l.subject("beat", first, l.node),
			proof: func(subject string) string { return l.subject("beat", l.shardIn(subject), l.node+"-proof") },
		})
	}
	return all
}

// of returns the stream of a topic.
func (s *streams) of(topic string) *stream {
	return s.documents[int(shardOf(topic))*len(s.documents)/shards]
}

// configs returns how the streams must be.
func (s *streams) configs(replicas int) []streamConfig {
	base := streamConfig{
		Storage: "file", Replicas: replicas, Retention: "limits",
		Discard: "new", // a full stream stores nothing; dropping the oldest would drop somebody's document
		MaxPer:  1, MaxMsgs: -1, MaxBytes: -1, AllowDirect: true, AllowTTL: true,
	}
	if s.opts.Memory {
		base.Storage = "memory"
	}
	subject := s.link.subject
	values := base
	values.Name, values.Description = s.values.name, "Freshet: claims, counters and notices"
	values.Subjects = []string{subject("val", ">"), subject("note", ">")}
	values.RePublish = &republished{subject("note", ">"), subject("noted", ">")}
	all := []streamConfig{values}
	for i, stream := range s.documents {
		docs := base
		docs.Name, docs.Description = stream.name, "Freshet: the newest document of each topic"
		docs.RePublish = &republished{subject("doc", ">"), subject("new", ">")}
		docs.Subjects = s.docSubjects(i)
		if s.opts.MaxBytes > 0 {
			docs.MaxBytes = s.opts.MaxBytes
		}
		all = append(all, docs)
	}
	return all
}

// docSubjects are the subjects of the i-th stream with documents.
func (s *streams) docSubjects(i int) []string {
	kinds := []string{"doc", "part", "beat"}
	var all []string
	if len(s.documents) == 1 {
		for _, kind := range kinds {
			all = append(all, s.link.subject(kind, ">"))
		}
		return all
	}
	for shard := range uint32(shards) {
		if int(shard)*len(s.documents)/shards == i {
			for _, kind := range kinds {
				all = append(all, s.link.subject(kind, shardToken(shard), ">"))
			}
		}
	}
	return all
}

// ensure makes the streams that are missing and fails if one is not as it must be.
func (s *streams) ensure(ctx context.Context) error {
	replicas := s.opts.Replicas
	if replicas <= 0 {
		replicas = 1
		if s.link.conn.ConnectedClusterName() != "" {
			replicas = 3
		}
		if s.opts.Servers > 0 {
			replicas = min(replicas, s.opts.Servers)
		}
	}
	for _, config := range s.configs(replicas) {
		if err := s.ensureOne(ctx, &config); err != nil {
			return err
		}
	}
	return nil
}

func (s *streams) ensureOne(ctx context.Context, want *streamConfig) error {
	for try := 0; ; try++ {
		have, err := s.info(ctx, want.Name)
		if hasCode(err, codeStreamNotFound) {
			have, err = s.create(ctx, want)
		}
		switch {
		case err == nil:
			return s.compare(want, have)
		case errors.Is(err, nats.ErrNoResponders) && s.link.conn.ConnectedClusterName() == "", hasCode(err, codeDisabled, codeAccountDisabled):
			return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf(
				"The NATS server at %s runs without JetStream: start it with -js, or with a jetstream block in its configuration", s.link.conn.ConnectedAddr()))
		case hasCode(err, codeOverlap):
			return freshet.Wrap(freshet.Conflict, err, fmt.Sprintf("The NATS stream %s cannot be made, because another stream has its subjects: grid.streams must be as "+
				"it was when the documents were stored, and the same on all nodes; or choose another nats_prefix", want.Name))
		case hasCode(err, codeReplicas):
			return s.notMade(want, err)
		case hasCode(err, codeStreamExists):
			// Another node was faster, with another configuration; compare says how they differ.
		}
		if try == 0 && !hasCode(err, codeStreamExists) {
			s.link.log.Warn("waiting for JetStream", "stream", want.Name, "err", err)
		}
		if !pause(ctx, 250*time.Millisecond) {
			return s.notMade(want, err)
		}
	}
}

func (s *streams) notMade(want *streamConfig, err error) error {
	hint := "check that a majority of the servers runs"
	if want.Replicas > 1 {
		hint += fmt.Sprintf("; %d replicas need as many servers with JetStream, or set grid.replicas to 1", want.Replicas)
	}
	return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf("The stream %s cannot be made (%v): %s", want.Name, err, hint))
}

// info returns how a stream is.
func (s *streams) info(ctx context.Context, name string) (*streamConfig, error) {
	return s.call(ctx, "STREAM.INFO."+name, nil)
}

func (s *streams) create(ctx context.Context, want *streamConfig) (*streamConfig, error) {
	return s.call(ctx, "STREAM.CREATE."+want.Name, want)
}

func (s *streams) call(ctx context.Context, name string, request any) (*streamConfig, error) {
	var reply struct {
		Error  *apiError    `json:"error"`
		Config streamConfig `json:"config"`
	}
	if err := s.link.call(ctx, name, request, &reply); err != nil {
		return nil, err
	}
	if reply.Error != nil {
		return nil, reply.Error
	}
	return &reply.Config, nil
}

// compare says what is wrong with a stream that was there already.
func (s *streams) compare(want, have *streamConfig) error {
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
	if s.opts.Replicas > 0 {
		differ("num_replicas", s.opts.Replicas, have.Replicas)
	}
	if len(differences) == 0 {
		return nil
	}
	return freshet.Errorf(freshet.Conflict, "The NATS stream %s exists with other settings: %s. Change the settings of this node, edit the stream, "+
		"or choose another nats_prefix", want.Name, strings.Join(differences, "; "))
}
