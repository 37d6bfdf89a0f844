package subscribe

import (
	"slices"

	"github.com/freshet-io/freshet"
)

// Code is what there is to know of one code of error events. The documentation and the tables of all clients are written from these.
type Code struct {
	Number  int
	Kind    freshet.Kind // for those who meet the code; several kinds may be told by it
	Meaning string
	When    string
	Stream  string // what becomes of the stream
	Final   bool   // connecting again would meet the same error: a client stops and says so

	// Renew says that new credentials are needed before connecting again can help.
	Renew bool

	// Back says when to connect again; empty if the error is final.
	Back string
}

// What becomes of streams, and when to come back.
const (
	ends          = "ends"
	goesOn        = "goes on once there is a document; ends before"
	goesOnIfNamed = "goes on once there is a document; ends before, and where the target's URL was subscribed to"

	asAdvised = "as `retry:` says"
	byItself  = "it goes on by itself; if it ended, as `retry:` says"
)

// codeTable has every code, in order. A test holds it against codes.
var codeTable = []Code{
	{Number: 40000, Kind: freshet.Invalid, Meaning: "Bad request", Stream: ends, Final: true,
		When: "The target URL or a parameter cannot be understood, or a filter was asked for on a topic of snapshots"},
	{Number: 40001, Kind: freshet.MalformedCredential, Meaning: "Invalid credentials format", Stream: ends, Final: true,
		When: "The key has characters that no key can have, or the signature is not encoded as one"},
	{Number: 40100, Kind: freshet.Unauthenticated, Meaning: "Unauthorized", Stream: ends, Final: true,
		When: "No key where one is required, a key of another app, no signature where one is required, or an app that does not allow subscribing to a URL"},
	{Number: 40110, Kind: freshet.UnknownCredential, Meaning: "Credentials error", Stream: ends, Final: true,
		When: "Nobody has this key, or the signature is wrong or does not cover what is asked for"},
	{Number: 40111, Kind: freshet.RevokedCredential, Meaning: "Credentials revoked", Stream: ends, Final: true,
		When: "The key was renewed; the app's owner has the new one"},
	{Number: 40112, Kind: freshet.ExpiredCredential, Meaning: "Credentials expired", Stream: ends, Renew: true, Back: "with a new signature, " + asAdvised,
		When: "The signature is too old"},
	{Number: 40120, Kind: freshet.AccountDisabled, Meaning: "Account disabled", Stream: ends, Final: true,
		When: "An admin disabled the account of the topic's owner"},
	{Number: 40121, Kind: freshet.ConnectionLimit, Meaning: "Account restricted", Stream: ends, Back: asAdvised + "; others may have left",
		When: "Too many connections at once, of the account, the app or the server; or a URL that would need a topic more than the quota allows"},
	{Number: 40122, Kind: freshet.MessageLimit, Meaning: "Account blocked", Stream: ends, Back: asAdvised + "; a new month or a higher quota helps",
		When: "The account's messages of this month are used up"},
	{Number: 40400, Kind: freshet.NotFound, Meaning: "Resource not found", Stream: ends, Final: true,
		When: "There is nothing at this path"},
	{Number: 40401, Kind: freshet.TopicNotFound, Meaning: "Topic not found", Stream: ends, Final: true,
		When: "There is no such topic"},
	{Number: 40500, Kind: freshet.MethodNotAllowed, Meaning: "Method not allowed", Stream: ends, Final: true,
		When: "Only GET, HEAD and OPTIONS are answered"},
	{Number: 50000, Kind: freshet.Internal, Meaning: "Internal error", Stream: ends, Back: asAdvised,
		When: "Our fault, or the server is just going away"},
	{Number: 50001, Kind: freshet.Timeout, Meaning: "Timeout error", Stream: ends, Back: asAdvised,
		When: "The first document did not come in time"},
	{Number: 60000, Kind: freshet.TopicGone, Meaning: "Topic in error", Stream: ends + "; over the quota it goes on once there is a document", Final: true,
		When: "The topic was deleted, or cannot publish any more; or the target's newest document is more than the quota `document_bytes` allows"},
	{Number: 60001, Kind: freshet.SourceFailed, Meaning: "Data source in error", Stream: goesOn, Back: byItself,
		When: "The target answered with an error, or broke off"},
	{Number: 60100, Kind: freshet.SourceUnreachable, Meaning: "Data source connection error", Stream: goesOn, Back: byItself,
		When: "The target cannot be reached, its address is not allowed, or its certificate is not trusted; in production also if its name is not known"},
	{Number: 60101, Kind: freshet.SourceUnauthorized, Meaning: "Data source credentials error", Stream: goesOnIfNamed, Back: byItself,
		When: "The target asks for credentials (401)"},
	{Number: 60102, Kind: freshet.SourceForbidden, Meaning: "Data source credentials revoked", Stream: goesOnIfNamed, Back: byItself,
		When: "The target refuses the credentials (403)"},
	{Number: 60103, Kind: freshet.SourceExpired, Meaning: "Data source credentials expired", Stream: goesOnIfNamed, Back: byItself,
		When: "The target says that the credentials expired"},
	{Number: 60400, Kind: freshet.SourceUnknownHost, Meaning: "Data source host unknown", Stream: goesOn, Back: byItself,
		When: "The name of the target's host cannot be resolved; in production that is 60100, like a name that leads inside"},
	{Number: 61500, Kind: freshet.SourceUnreadable, Meaning: "Unsupported data source format", Stream: goesOn, Back: byItself,
		When: "The target's answer is no strict JSON, is too large, or is no array of items on an item topic"},
}

// Codes returns every code, in order.
func Codes() []Code { return slices.Clone(codeTable) }

// CodeOf returns what there is to know of a code.
func CodeOf(number int) (code Code, known bool) {
	i, known := slices.BinarySearchFunc(codeTable, number, func(c Code, number int) int { return c.Number - number })
	if !known {
		return Code{Number: number}, false
	}
	return codeTable[i], true
}
