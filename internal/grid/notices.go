package grid

import "context"

// Scope is what a notice is about.
type Scope string

// The scopes of a notice.
const (
	ScopeUser  Scope = "user"
	ScopeApp   Scope = "app"
	ScopeTopic Scope = "topic"

	ScopeCatalog Scope = "catalog" // all users, apps and topics; the ID is empty

	ScopeSource  Scope = "source"  // of a topic: its data source began or ceased to fail
	ScopePoll    Scope = "poll"    // of a topic: poll it now
	ScopeGateway Scope = "gateway" // registered APIs, plugins, consumers
)

// Notice says "look again at this": what the catalog says about it may have changed. It carries no news itself, so
// a repeated or late one does no harm, and a lost one is made good by the next look.
type Notice struct {
	Scope Scope
	ID    string
}

// Notices reach every node, the sender's own included.
type Notices interface {
	// Notify returns once every node that is up has passed the notice on, or could not be waited for any longer: the notice then
	// reaches it later. Notices about data sources are not waited for.
	Notify(ctx context.Context, n Notice) error

	// Tell passes a notice on to this node only, for whoever found out himself.
	Tell(n Notice)

	// OnNotice calls fn for each notice, after the functions that were given earlier: a cache that listens first has forgotten what
	// the notice is about when others ask it. fn must not block and must not call back into whoever sends notices.
	OnNotice(fn func(Notice)) (stop func())
}
