package catalog

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/keyfile"
	"github.com/freshet-io/freshet/internal/store"
)

// What is called how in the table of secrets.
const (
	storedSecret = "token"     // the secret itself, where nodes share it through the database
	sealedBy     = "sealed-by" // the identifier of the secret with which everything is sealed
)

// secrets are what signs tokens and seals credentials, and what did before. Previous ones only open seals: whoever rotates
// because a secret leaked must be able to rely on it that no token of that secret is good any more.
type secrets struct {
	current  []byte
	previous [][]byte
	stored   []byte       // in the database; nil if there is none
	file     keyfile.Keys // in the key file; zero if there is none
}

// findSecrets looks for the secret where the options say that it is, and makes it at the first start.
func findSecrets(ctx context.Context, s *store.Store, o *Options) (*secrets, error) {
	found := &secrets{}
	var err error
	if found.stored, err = s.Secret(ctx, storedSecret); err != nil && freshet.KindOf(err) != freshet.NotFound {
		return nil, err
	}
	if o.KeyFile != "" {
		if found.file, err = readKeyFile(o); err != nil {
			return nil, err
		}
	}
	switch {
	case len(o.TokenSecret) > 0:
		found.current = o.TokenSecret
	case o.KeyFile != "":
		if err := found.intoFile(o); err != nil {
			return nil, err
		}
	case found.stored == nil:
		if found.stored, err = shareSecret(ctx, s, o); err != nil {
			return nil, err
		}
		fallthrough
	default:
		found.current = found.stored
	}
	for _, p := range slices.Concat([][]byte{o.PreviousSecret, found.file.Current}, found.file.Previous, [][]byte{found.stored}) {
		if len(p) > 0 && !bytes.Equal(p, found.current) {
			found.previous = append(found.previous, p)
		}
	}
	return found, nil
}

func readKeyFile(o *Options) (keyfile.Keys, error) {
	k, err := keyfile.Read(o.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return keyfile.Keys{}, nil
	}
	if err != nil {
		return keyfile.Keys{}, err
	}
	exposed, err := keyfile.Tighten(o.KeyFile)
	switch {
	case err != nil:
		o.Log.Warn("others can read the key file, and its permissions cannot be changed", "file", o.KeyFile, "err", err)
	case exposed:
		o.Log.Warn("others could read the key file; now they cannot. If somebody did, run freshet secrets rotate", "file", o.KeyFile)
	}
	return k, nil
}

// intoFile sees to it that the key file has a secret: the one that the database had before there were key files, or a new one.
// Only once the file is on disk may it be removed from the database.
func (f *secrets) intoFile(o *Options) error {
	if f.file.Current == nil {
		f.file.Current = f.stored
		if f.stored == nil {
			f.file.Current = keyfile.New()
		}
		if err := keyfile.Write(o.KeyFile, f.file); err != nil {
			return err
		}
		if f.stored != nil {
			o.Log.Info("the secret has moved from the database to a file of its own; keep a copy of it apart from copies of the database", "file", o.KeyFile)
		}
	}
	f.current = f.file.Current
	return nil
}

// secretLook is how often a process that may not make the secret looks for it.
const secretLook = 200 * time.Millisecond

// shareSecret makes the secret that nodes share through the database, or waits until a process with the role manage has.
func shareSecret(ctx context.Context, s *store.Store, o *Options) (secret []byte, err error) {
	if o.Writer == nil {
		err = s.Update(ctx, func(tx *store.Tx) error {
			secret, err = tx.Secret(storedSecret, keyfile.New)
			return err
		})
		return secret, err
	}
	for {
		if secret, err = s.Secret(ctx, storedSecret); freshet.KindOf(err) != freshet.NotFound {
			return secret, err
		}
		select {
		case <-ctx.Done():
			return nil, freshet.Errorf(freshet.Unavailable, "The database has no token secret yet: start a process with the role manage, which makes it")
		case <-time.After(secretLook):
		}
	}
}

// settle brings the database to the current secret, where this process alone uses it; where several do, others may not know
// that secret yet, so a person says when.
func (f *secrets) settle(ctx context.Context, s *store.Store, with *seals, o *Options) error {
	f.warn(o)
	known, err := f.sealedByKnown(ctx, s, with)
	if err != nil {
		return err
	}
	switch {
	case known == sealedCurrent && (f.stored == nil || f.shares(o)):
		return nil
	case known == sealedUnknown:
		o.Log.Error("the credentials in the database are sealed with a secret that is not here: put its key file or token.secret back, "+
			"or set them again and run freshet secrets rotate", "file", o.KeyFile)
		return nil
	case o.KeyFile == "" && len(f.previous) > 0:
		o.Log.Warn("credentials may be sealed with the secret before token.secret: run freshet secrets rotate once all nodes have the new one")
		return nil
	}
	_, err = f.reseal(ctx, s, with, o)
	return err
}

// warn tells what an operator should know about where the secret is.
func (f *secrets) warn(o *Options) {
	if o.KeyFile == "" && len(o.TokenSecret) == 0 && o.Shared {
		o.Log.Warn("the secret that signs tokens and seals credentials is in the database, where every copy of it has it: set token.secret on all nodes")
	}
}

// sealState is what the database says about the secret with which everything in it is sealed.
type sealState int

const (
	sealedNever   sealState = iota // it says nothing
	sealedCurrent                  // with the current one
	sealedBefore                   // with a previous one
	sealedUnknown                  // with one that nobody has here
)

func (f *secrets) sealedByKnown(ctx context.Context, s *store.Store, with *seals) (sealState, error) {
	id, err := s.Secret(ctx, sealedBy)
	switch {
	case freshet.KindOf(err) == freshet.NotFound:
		return sealedNever, nil
	case err != nil:
		return sealedNever, err
	case bytes.Equal(id, with.id):
		return sealedCurrent, nil
	}
	for _, p := range f.previous {
		before, err := secretID(p)
		if err != nil || bytes.Equal(id, before) {
			return sealedBefore, err
		}
	}
	return sealedUnknown, nil
}

// Rotation is what became of the credentials in the database.
type Rotation struct {
	Resealed int // now sealed with the current secret
	Lost     int // sealed with a secret that nobody has here; they must be set again
}

// Rotate seals everything with a new secret: with a fresh one if a key file has it, with token.secret if that is set. Until it
// is done the secret before is kept as well, so whoever is interrupted starts it again. Tokens of the secret before are no
// longer good.
func Rotate(ctx context.Context, s *store.Store, o Options) (Rotation, error) {
	if len(o.TokenSecret) == 0 && o.KeyFile == "" {
		return Rotation{}, freshet.Errorf(freshet.Invalid,
			"The nodes share their secret through the database: set token.secret on all of them, restart them, and run this again with the same setting")
	}
	found, err := findSecrets(ctx, s, &o)
	if err != nil {
		return Rotation{}, err
	}
	if len(o.TokenSecret) == 0 && len(found.file.Previous) == 0 {
		next := keyfile.Keys{Current: keyfile.New(), Previous: [][]byte{found.current}}
		if err := keyfile.Write(o.KeyFile, next); err != nil {
			return Rotation{}, err
		}
		found.current, found.file = next.Current, next
		found.previous = append(found.previous, next.Previous...)
	}
	with, err := newSeals(found.current, found.previous...)
	if err != nil {
		return Rotation{}, err
	}
	done, err := found.reseal(ctx, s, with, &o)
	if err != nil {
		return done, err
	}
	return done, s.Compact(ctx)
}

// reseal seals with the current secret what another one has sealed, and then forgets that one. Done twice it does no harm.
func (f *secrets) reseal(ctx context.Context, s *store.Store, with *seals, o *Options) (done Rotation, err error) {
	if len(f.previous) > 0 {
		if done, err = resealTopics(ctx, s, with); err != nil {
			return done, err
		}
	}
	if done.Lost > 0 {
		o.Log.Error("credentials of topics cannot be read and must be set again", "topics", done.Lost)
	}
	if err := s.Update(ctx, func(tx *store.Tx) error { return tx.SaveSecret(sealedBy, with.id) }); err != nil {
		return done, err
	}
	if f.stored != nil && !f.shares(o) {
		if err := s.EraseSecret(ctx, storedSecret); err != nil {
			return done, err
		}
	}
	if len(o.TokenSecret) == 0 && len(f.file.Previous) > 0 {
		err = keyfile.Write(o.KeyFile, keyfile.Keys{Current: f.current})
	}
	return done, err
}

// shares reports whether the database is where the secret belongs.
func (f *secrets) shares(o *Options) bool { return len(o.TokenSecret) == 0 && o.KeyFile == "" }

// resealSlice is how many topics are looked at and written at a time.
const resealSlice = 200

func resealTopics(ctx context.Context, s *store.Store, with *seals) (done Rotation, err error) {
	for after := ""; ; {
		topics, err := s.PollerTopics(ctx, after, resealSlice)
		if err != nil || len(topics) == 0 {
			return done, err
		}
		after = topics[len(topics)-1].ID
		topics = slices.DeleteFunc(topics, func(t freshet.Topic) bool { return !with.outdated(&t) })
		if len(topics) == 0 {
			continue
		}
		var slice Rotation
		err = s.Update(ctx, func(tx *store.Tx) (err error) {
			slice, err = resealSome(tx, with, topics)
			return err
		})
		if err != nil {
			return done, err
		}
		done.Resealed += slice.Resealed
		done.Lost += slice.Lost
	}
}

// resealSome keeps everything else of the topics as it is, also the time of their last change: nobody needs to look again.
func resealSome(tx *store.Tx, with *seals, topics []freshet.Topic) (done Rotation, err error) {
	for i := range topics {
		found, err := tx.LockTopic(topics[i].ID)
		if freshet.KindOf(err) == freshet.NotFound {
			continue
		}
		if err != nil {
			return done, err
		}
		topic := &found.Topic
		if !with.outdated(topic) {
			continue // changed meanwhile
		}
		url, err := with.open(topic)
		if err != nil {
			done.Lost++
			continue
		}
		if err := with.seal(topic, url); err != nil {
			return done, err
		}
		if err := tx.SaveTopic(topic); err != nil {
			return done, err
		}
		done.Resealed++
	}
	return done, nil
}
