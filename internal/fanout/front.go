package fanout

import (
	"net/http"

	"github.com/freshet-io/freshet/internal/plain"
)

// FrontHandler is a handler most of whose requests become streams.
type FrontHandler interface {
	http.Handler

	// Streams reports whether the request asks for a stream, so that a connection that ends with the answer will do. It
	// may be wrong. It must not block.
	Streams(r *http.Request) bool
}

// DeskHandler is a FrontHandler that can begin most streams at once.
type DeskHandler interface {
	FrontHandler

	// BeginNow begins the stream that a request asks for, just as ServeHTTP would, if everything that takes is in memory: it must
	// not wait for a client, a store or another node. False means that nothing was begun, for whatever reason, and that ServeHTTP
	// shall answer. The head is good during the call.
	BeginNow(h *plain.Head) (Stream, bool)
}

// maxHead is the longest request that is read without net/http, in bytes.
const maxHead = 4 << 10
