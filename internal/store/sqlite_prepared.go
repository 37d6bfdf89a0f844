package store

import (
	"context"
	"database/sql/driver"

	"github.com/ncruces/go-sqlite3"
	sqlitedriver "github.com/ncruces/go-sqlite3/driver"
)

// SQLite parses the text of every statement, which takes longer than running most of ours. So each connection keeps the
// statements that it has prepared. It is done below database/sql, which can keep statements too, but has to prepare
// them outside of the transaction that needs them: on the one writing connection it would wait for itself.

// maxPrepared bounds what a connection keeps. The package has fewer texts than that; one too many is prepared each time.
const maxPrepared = 256

// preparing opens connections that keep their statements.
type preparing struct {
	driver.Connector
	begin func() error              // before a connection opens the file
	init  func(*sqlite3.Conn) error // before it is used
}

func newPreparing(name string, begin func() error, init func(*sqlite3.Conn) error) (*preparing, error) {
	connector, err := new(sqlitedriver.SQLite).OpenConnector(name)
	return &preparing{connector, begin, init}, err
}

// sqliteConn is what database/sql makes use of in a connection of the driver.
type sqliteConn interface {
	sqlitedriver.Conn
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.ExecerContext
	driver.NamedValueChecker
}

// Connect implements driver.Connector.
func (p *preparing) Connect(ctx context.Context) (driver.Conn, error) {
	if err := p.begin(); err != nil {
		return nil, err
	}
	opened, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := opened.(sqliteConn) //nolint:errcheck // the driver has one kind, and no connection could be opened with another
	if err := p.init(conn.Raw()); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &preparedConn{sqliteConn: conn, idle: map[string]*preparedStmt{}}, nil
}

// preparedConn belongs to one goroutine at a time, as database/sql has it.
type preparedConn struct {
	sqliteConn
	idle map[string]*preparedStmt // by text; a statement that runs is not among them
	kept int                      // statements that come back
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *preparedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if s := c.idle[query]; s != nil {
		delete(c.idle, query)
		return s, nil
	}
	made, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil || c.kept == maxPrepared {
		return made, err
	}
	c.kept++
	return &preparedStmt{sqliteStmt: made.(sqliteStmt), conn: c, query: query}, nil //nolint:errcheck // as above
}

// sqliteStmt is what database/sql makes use of in a statement of the driver.
type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	driver.NamedValueChecker
}

type preparedStmt struct {
	sqliteStmt
	conn  *preparedConn
	query string
}

// Close keeps the statement for the next time, unless another of its text came back first. Closing the connection frees it.
func (s *preparedStmt) Close() error {
	if s.conn.idle[s.query] != nil {
		s.conn.kept--
		return s.sqliteStmt.Close()
	}
	s.conn.idle[s.query] = s
	return nil
}

// Close implements driver.Conn. SQLite would not let go of the file while a statement is left.
func (c *preparedConn) Close() error {
	for _, s := range c.idle {
		_ = s.sqliteStmt.Close() // what went wrong with it was told when it ran
	}
	return c.sqliteConn.Close()
}
