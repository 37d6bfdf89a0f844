package manage

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/freshet-io/freshet"
)

// statements counts what every SQLite connection of this process executes. The test that reads it runs alone.
var statements atomic.Int64

func init() {
	sqlite3.AutoExtension(func(c *sqlite3.Conn) error {
		return c.Trace(sqlite3.TRACE_STMT, func(sqlite3.TraceEvent, any, any) error {
			statements.Add(1)
			return nil
		})
	})
}

func TestAManagementReadIsAtMostTwoStatements(t *testing.T) {
	s := serve(t)
	c, admin := s.tenant(), s.admin()
	s.publish(c.topic, `{}`)
	ids := strings.NewReplacer("{user_id}", c.id, "{app_id}", c.app, "{topic_id}", c.topic, "{connection_id}", "c")
	s.streams.open = []freshet.Connection{{ID: "c", TopicID: c.topic, Mode: "patch", Encoding: "identity", Transport: "loop"}}
	registered := registerOne(admin)
	docs, err := descriptions()
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	for _, doc := range docs {
		for path, item := range doc.Paths.Map() {
			if item.Get == nil {
				continue
			}
			caller := c.client
			if strings.HasPrefix(path, "/admin") {
				caller = admin
			}
			reads++
			most := int64(2)
			if strings.HasSuffix(path, "/key-auth") || strings.HasSuffix(path, "{api}/plugins") {
				most = 3 // whose they are may be a name, which is looked up first
			}
			n := int64(0)
			for range 5 { // the catalog reads the log of changes every second, perhaps just then
				before := statements.Load()
				caller.call("GET", registered.Replace(ids.Replace(path)), nil).want(200)
				if n = statements.Load() - before; n <= most {
					break
				}
			}
			if n < 1 || n > most {
				t.Errorf("GET %s: %d statements", path, n)
			}
		}
	}
	if reads < 10 {
		t.Errorf("only %d reads", reads)
	}
}
