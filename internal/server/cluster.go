package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid/jetstream"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/grid/natsserver"
	"github.com/freshet-io/freshet/internal/settings"
)

// openGrid opens what the nodes share: in memory if this is the only one, on NATS otherwise.
func (p *parts) openGrid(ctx context.Context) error {
	s := p.settings
	if s.NATS == "" {
		if len(s.Roles) < len(settings.Roles()) {
			p.log.Warn("this process shares its documents with no other; set nats to join a cluster", "roles", s.Roles)
		}
		p.grid = &countedGrid{Grid: memory.New(memory.Options{MessageTTL: s.Grid.MessageTTL, Account: p.budget.held.Add})}
		return nil
	}
	opts := jetstream.Options{
		URL: s.NATS.Reveal(), Credentials: s.NATSCredentials, CA: s.NATSCA, Certificate: s.NATSCertificate, Key: s.NATSKey,
		Prefix: s.NATSPrefix, MessageTTL: s.Grid.MessageTTL, Memory: s.Grid.Storage == settings.StorageMemory,
		Replicas: int(s.Grid.Replicas), Streams: int(s.Grid.Streams), MaxBytes: int64(s.Grid.MaxBytes), Log: p.log,
	}
	if s.NATS.Reveal() == settings.EmbeddedNATS {
		if err := p.startNATS(ctx); err != nil {
			return err
		}
		opts.URL, opts.InProcess = "", p.nats
		opts.User, opts.Password = p.nats.Account()
		opts.Servers = len(s.NATSPeers)
	}
	g, err := jetstream.Open(ctx, opts)
	if err != nil {
		p.stopNATS()
		return err
	}
	p.grid = &countedGrid{Grid: g}
	return nil
}

// startNATS runs a NATS server in this process.
func (p *parts) startNATS(ctx context.Context) error {
	s := p.settings
	name, err := nodeName(s.Data)
	if err != nil {
		return freshet.Wrap(freshet.Invalid, err, "The data directory cannot be used: "+err.Error())
	}
	opts := natsserver.Options{
		Name: name, Dir: s.Data, Listen: s.NATSListen, Peers: s.NATSPeers, Secret: s.NATSSecret, Log: p.log,
	}
	if len(s.NATSPeers) > 0 {
		opts.Cluster = s.NATSClusterListen
	}
	if p.nats, err = natsserver.Start(ctx, opts); err != nil {
		return err
	}
	attrs := []any{"name", name}
	if url := p.nats.URL(); url != "" {
		attrs = append(attrs, "clients", url)
	}
	if address := p.nats.ClusterAddress(); address != "" {
		attrs = append(attrs, "peers", address)
	}
	p.log.Info("embedded NATS server runs", attrs...)
	return nil
}

func (p *parts) closeGrid(context.Context) error {
	err := p.grid.Close()
	p.stopNATS()
	return err
}

func (p *parts) stopNATS() {
	if p.nats != nil {
		p.nats.Close()
		p.nats = nil
	}
}

// gridCheck is the readiness of the grid, if it can fail.
func (p *parts) gridCheck() (check, bool) {
	g, ok := p.grid.Grid.(interface{ Check(context.Context) error })
	if !ok {
		return check{}, false
	}
	return check{name: "grid", ask: g.Check}, true
}

// nodeName returns the name of this node's NATS server, which must be the same after a restart: its peers count on it.
func nodeName(dir string) (string, error) {
	path := filepath.Join(dir, "node-name")
	if known, err := os.ReadFile(path); err == nil && len(known) > 0 {
		return strings.TrimSpace(string(known)), nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := "freshet-" + freshet.NewID()
	return name, os.WriteFile(path, []byte(name+"\n"), 0o600)
}
