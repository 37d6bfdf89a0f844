// Package catalog knows what exists and who may: accounts, sessions, apps, topics, keys. Every rule about them
// stands here, once, above the store that keeps them and below the surfaces that ask.
//
// It does not speak HTTP or SQL, and it does not touch documents. A Catalog is safe for concurrent use.
package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/loglimit"
	"github.com/freshet-io/freshet/internal/store"
)

// Notifier tells every node that something changed and must be looked at again. The grid is one.
type Notifier interface {
	Notify(ctx context.Context, n grid.Notice) error
	OnNotice(func(grid.Notice)) (stop func())
	Tell(n grid.Notice) // this node only
}

// Documents lets go of what was published to topics that no longer exist. The router is one.
type Documents interface {
	Forget(ctx context.Context, topicID string) error
}

// Options are the settings that rules depend on.
type Options struct {
	Production        bool
	OpenSignUp        bool
	SignUpsPerAddress int64           // accounts that strangers may make from one network in an hour; 0 = any number
	Counter           httpkit.Counter // counts them; nil if any number is allowed
	Writer            Writer          // of a process that may not write; nil: it does so itself
	Shared            bool            // other processes use the store as well
	TokenLifetime     time.Duration
	TokenSecret       []byte // used instead of one that is made at the first start
	PreviousSecret    []byte // what TokenSecret was before: it opens what is not sealed again yet, and nothing else
	KeyFile           string // where the secret is kept of a database that only this process uses; empty: in the database
	AdminEmail        string
	AdminPassword     freshet.Secret
	Quotas            freshet.Quotas // what accounts get that have none of their own
	AppQuotas         freshet.Quotas // and apps
	ProvisionedTopics int64          // how many an app may have before its subscribers can make no more; 0 = any
	SignatureAge      time.Duration  // how old a client's signature may be; 0 = 24 h
	Documents         Documents      // nil if there are none to forget
	Hashing           Hashing        // the cost of a password; zero = the recommended one
	Now               func() time.Time
	Log               *slog.Logger

	lookEvery time.Duration // for tests; 0 is the usual
}

// Catalog answers questions about what exists, and changes it.
type Catalog struct {
	// Static after New.
	store    *store.Store
	notifier Notifier
	opts     Options
	now      func() time.Time
	log      *slog.Logger
	secret   []byte // signs tokens
	seals    *seals // hide credentials of targets
	stop     func() // ends the subscription to notices

	overlaps      overlaps
	passwords     passwords
	attempts      *attempts
	failedSignIns *loglimit.Logger // of passwords
	follower      follower
	keys          *cache[keyRef, *store.KeyRecord]
	apps          *cache[string, *store.AppRecord]
	topics        *cache[string, *store.TopicRecord]
	former        *cache[appRef, *formerKeys]
}

// New makes a catalog over an open store and prepares what the first start must create: the token secret and the
// admin. It refuses a production server whose admin still has the fixed password.
func New(ctx context.Context, s *store.Store, notifier Notifier, opts Options) (*Catalog, error) {
	shared := opts.Now // what nodes write down for each other goes by one clock
	if opts.Now == nil {
		opts.Now, shared = time.Now, s.Now
	}
	if opts.SignatureAge <= 0 {
		opts.SignatureAge = defaultSignatureAge
	}
	c := &Catalog{
		store:         s,
		notifier:      notifier,
		opts:          opts,
		now:           func() time.Time { return shared().Truncate(time.Millisecond) }, // what the store keeps
		log:           opts.Log,
		passwords:     newPasswords(opts.Hashing),
		attempts:      newAttempts(),
		failedSignIns: loglimit.New(opts.Log, "failed sign-ins", failedSignInLines),
	}
	c.makeCaches()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	c.startFollowing(ctx)
	c.stop = notifier.OnNotice(c.forget)
	return c, nil
}

// prepare makes what the first start must make, or waits for it.
func (c *Catalog) prepare(ctx context.Context) error {
	found, err := findSecrets(ctx, c.store, &c.opts)
	if err != nil {
		return fmt.Errorf("token secret: %w", err)
	}
	c.secret = found.current
	if c.seals, err = newSeals(found.current, found.previous...); err != nil {
		return fmt.Errorf("seal of credentials: %w", err)
	}
	if c.opts.Writer != nil {
		return nil
	}
	if err := found.settle(ctx, c.store, c.seals, &c.opts); err != nil {
		return fmt.Errorf("seal of credentials: %w", err)
	}
	return c.ensureAdmin(ctx)
}

// Close ends the catalog's interest in notices. The store stays open: whoever opened it closes it.
func (c *Catalog) Close() {
	c.stop()
	c.failedSignIns.Close()
	c.follower.close()
	c.overlaps.close()
	c.keys.close()
	c.apps.close()
	c.topics.close()
	c.former.close()
}

// forgetDocuments drops the documents of deleted topics. What cannot be dropped now disappears by its TTL.
func (c *Catalog) forgetDocuments(ctx context.Context, topicIDs []string) {
	if c.opts.Documents == nil {
		return
	}
	for _, id := range topicIDs {
		if err := c.opts.Documents.Forget(context.WithoutCancel(ctx), id); err != nil {
			c.log.Warn("documents of deleted topics stay until they expire", "first", id, "err", err)
			return
		}
	}
}

// notify tells all nodes, this one included, to look again. A notice that cannot be sent delays the others until
// their next periodic look; the write itself is done and stays done.
func (c *Catalog) notify(ctx context.Context, scope grid.Scope, id string) {
	n := grid.Notice{Scope: scope, ID: id}
	c.forget(n)
	if err := c.notifier.Notify(context.WithoutCancel(ctx), n); err != nil {
		c.log.Warn("notice not sent", "scope", string(scope), "id", id, "err", err)
	}
}

// Page is a part of a listing: how many to pass over, and how many to give.
type Page = store.Page

// Listing is one page of things and how many there are in all.
type Listing[T any] = store.Listing[T]

func notFound(noun string) error {
	return freshet.Errorf(freshet.NotFound, "There is no such %s", noun)
}

// checkID answers for identifiers that cannot exist, before anybody asks the store.
func checkID(noun, id string) error {
	if !freshet.IsID(id) {
		return notFound(noun)
	}
	return nil
}

// rename gives the store's bare "not found" the name of what was looked for, and leaves other errors alone.
func rename(err error, noun string) error {
	if freshet.KindOf(err) == freshet.NotFound {
		return notFound(noun)
	}
	return err
}

// taken names the field whose value somebody else has.
func taken(cause error, field, msg string) error {
	return &freshet.Error{Kind: freshet.Conflict, Msg: msg, Fields: []freshet.FieldError{{Field: field, Message: "is taken"}}, Err: cause}
}
