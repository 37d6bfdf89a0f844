package publish

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/router"
)

// Door is where requests come in.
type Door interface {
	// Enter reports whether a request for the path would reach the publishing API as it is, and which path it would see. If
	// so, Leave must be called when it is answered.
	Enter(path string) (inside string, ok bool)
	Leave()
}

// Clerk returns who takes plain publications behind the door straight from their connections. What the HTTP library does for each of
// them costs more than to compare the documents. One that is refused before its body was read is declined.
func (a *API) Clerk(door Door) func(*httpkit.DeskConn) httpkit.Clerk {
	return func(c *httpkit.DeskConn) httpkit.Clerk { return &clerk{api: a, door: door, conn: c} }
}

type clerk struct {
	api  *API
	door Door
	conn *httpkit.DeskConn
}

// Take implements httpkit.Clerk.
func (c *clerk) Take(read []byte) (httpkit.Turn, error) {
	req, ok := readPlain(read)
	if !ok || c.api.opts.Tracer != nil { // to follow publications takes more than a clerk knows
		return httpkit.Declined, nil
	}
	inside, ok := c.door.Enter(req.path)
	if !ok {
		return httpkit.Declined, nil
	}
	defer c.door.Leave()
	return c.answer(req, inside, read[req.headLen:])
}

func (c *clerk) answer(req plainHead, inside string, begun []byte) (httpkit.Turn, error) {
	ctx := c.conn.Context()
	grant, budget, ok := c.api.admit(ctx, req, inside)
	if !ok {
		return httpkit.Declined, nil
	}
	body, err := c.readBody(begun, req.length)
	if err != nil {
		return httpkit.Taken, c.refuse(inside, budget, httpkit.BodyError(err), true)
	}
	out, err := c.api.tryHand(ctx, grant, router.Publication{
		Form: router.Whole, Body: body, Gone: func() bool { return httpkit.ConnGone(ctx) },
	})
	if err != nil {
		return httpkit.Taken, c.refuse(inside, budget, err, c.conn.IsLast())
	}
	return httpkit.Taken, c.accept(out, budget, c.conn.IsLast())
}

// admit asks everything that a publication's head can be refused for. To say why is left to the library.
func (a *API) admit(ctx context.Context, req plainHead, inside string) (grant *catalog.Grant, b httpkit.Budget, ok bool) {
	id, ok := topicOf(inside)
	if !ok || int64(req.length) > a.opts.MaxBody {
		return nil, b, false
	}
	grant, err := a.catalog.MayPublish(ctx, id, req.key)
	if err != nil || grant.Topic.Publisher.Type != freshet.HTTPPost {
		return nil, b, false
	}
	// Who has nothing left is counted again by the library, which changes nothing.
	b, err = a.take(ctx, grant)
	return grant, b, err == nil
}

// tryHand gives a publication to the router. One bad publication cannot end the process.
func (a *API) tryHand(ctx context.Context, grant *catalog.Grant, p router.Publication) (out router.Outcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the publication panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return a.hand(ctx, grant, p)
}

// readBody reads what is missing of a body.
func (c *clerk) readBody(begun []byte, length int) ([]byte, error) {
	body := make([]byte, length)
	n := copy(body, begun)
	if n == length {
		return body, nil
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(c.api.opts.BodyTimeout))
	_, err := io.ReadFull(c.conn.Socket, body[n:])
	return body, err
}
