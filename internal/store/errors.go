package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/freshet-io/freshet"
)

// What a Conflict clashed with; errors.Is finds them in what the Tx methods and Update return.
var (
	ErrEmailTaken   = errors.New("another account has this e-mail")
	ErrAppNameTaken = errors.New("another app of the user has this name")
	ErrKeyTaken     = errors.New("another app has this key, or had it")
)

// fault is how an engine sorts an error of its driver.
type fault struct {
	class faultClass
	index string // of clash: the name of the unique index, or the columns in SQLite's words
}

type faultClass int

const (
	unknown  faultClass = iota
	away                // the database cannot be reached, or was taken from us
	full                // its disk has no room
	readOnly            // its disk, or the database itself, takes no changes
	broken              // its disk fails
	contend             // it lost against another transaction: running it again can help
	clash               // a unique index
	orphan              // a foreign key: what it belongs to is gone
	numFaults
)

// Failures is how often the database failed: it was away, its disk was full, read-only or broken, it made transactions wait for
// each other, or nobody knows.
type Failures struct{ Away, Full, ReadOnly, Broken, Contention, Unknown uint64 }

// Failures returns the counters.
func (s *Store) Failures() Failures {
	f := &s.engine.health.failures
	return Failures{
		Away: f[away].Load(), Full: f[full].Load(), ReadOnly: f[readOnly].Load(), Broken: f[broken].Load(),
		Contention: f[contend].Load(), Unknown: f[unknown].Load(),
	}
}

// clashes maps unique indexes, as each engine names them, to what the catalog calls them.
var clashes = map[string]*freshet.Error{
	"users_email_key":         {Kind: freshet.Conflict, Msg: "This e-mail is already in use", Err: ErrEmailTaken},
	"users.email_key":         {Kind: freshet.Conflict, Msg: "This e-mail is already in use", Err: ErrEmailTaken},
	"apps_user_name":          {Kind: freshet.Conflict, Msg: "An app with this name already exists", Err: ErrAppNameTaken},
	"apps.user_id, apps.name": {Kind: freshet.Conflict, Msg: "An app with this name already exists", Err: ErrAppNameTaken},
	"keys_pkey":               {Kind: freshet.Conflict, Msg: "This key is already in use", Err: ErrKeyTaken},
	"keys.kind, keys.value":   {Kind: freshet.Conflict, Msg: "This key is already in use", Err: ErrKeyTaken},
}

// contention marks errors that Update answers by trying again.
type contention struct{ error }

func (c contention) Unwrap() error { return c.error }

// classify gives an error of the driver its kind. Arguments never appear in it: they may be keys.
func (e *engine) classify(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		// The engines have their own words for it; callers look for the context's.
		return fmt.Errorf("%s: %w (%v)", e.name, ctx.Err(), err)
	}
	f := e.sort(err)
	e.health.failures[f.class].Add(1)
	switch f.class {
	case away:
		return unavailable(err)
	case full, readOnly, broken:
		e.health.note(f.class, err)
		return &freshet.Error{Kind: freshet.Unavailable, Msg: sentences[f.class], Err: err, Logged: true}
	case contend:
		return contention{unavailable(err)}
	case clash:
		if known, ok := clashes[f.index]; ok {
			return known
		}
		return freshet.Wrap(freshet.Conflict, err, "This already exists")
	case orphan:
		return freshet.Wrap(freshet.NotFound, err, "What this belongs to no longer exists")
	}
	return fmt.Errorf("%s: %w", e.name, err)
}

// sort finds out what kind of fault an error of the driver is.
func (e *engine) sort(err error) fault {
	f := e.fault(err)
	if f.class == broken && e.health.disk != nil {
		f.class = e.health.disk.diagnose(err)
	}
	return f
}

func unavailable(cause error) *freshet.Error {
	return freshet.Wrap(freshet.Unavailable, cause, "The database is not available, please try again")
}
