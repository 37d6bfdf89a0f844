package settings

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/freshet-io/freshet"
)

// Settings is what the program runs with: complete, valid, and typed. Only Load and Default make one.
type Settings struct {
	Environment Environment
	Data        string
	Database    freshet.Secret // a URL that may carry a password; empty means the embedded database
	NATS        freshet.Secret // URLs that may carry passwords, or EmbeddedNATS; empty means the in-process grid
	Roles       []Role
	Signup      Signup

	Distribution freshet.Distribution

	NATSCredentials   string // file; empty means none
	NATSCA            string // PEM file; empty means the system's authorities
	NATSCertificate   string // PEM file of this client
	NATSKey           string // PEM file
	NATSPrefix        string
	NATSPeers         []string // of the embedded server
	NATSListen        string   // of the embedded server; empty means nobody else connects
	NATSClusterListen string   // of the embedded server, if it has peers
	NATSSecret        freshet.Secret

	Gateway struct {
		Listen          string
		ConnectTimeout  time.Duration
		ResponseTimeout time.Duration
		ManageURL       string // empty unless the management API runs elsewhere
		PublishURL      string // empty unless the publishing API runs elsewhere
	}
	Admin struct {
		Listen   string
		Token    freshet.Secret // empty asks for none
		Email    string
		Password freshet.Secret
	}
	Subscriber struct {
		Listen        string
		PublicURL     string // as browsers reach it; empty means on the gateway's host
		WriteTimeout  time.Duration
		SnapshotEvent string
		Heartbeat     time.Duration

		SnapshotTimeout time.Duration
	}
	Poller struct {
		DenyPrivate     bool
		ErrorThreshold  int64
		HostConcurrency int64
		Concurrency     int64
	}
	TLS struct {
		Certificate string // PEM file; empty means plain HTTP
		Key         string // PEM file
	}
	Token struct {
		Secret         freshet.Secret // empty means the one made at first start
		PreviousSecret freshet.Secret // what Secret was before; empty means none
		Lifetime       time.Duration
	}
	Activation struct {
		Key       freshet.Secret // empty means none
		PublicKey string         // of the issuer; empty means the project's
	}
	Log struct {
		Format LogFormat
		Level  slog.Level
	}
	Manage struct {
		RequestsPerMinute int64
	}
	Publish struct {
		RequestsPerMinute int64
		MaxBody           Size
	}
	Grid struct {
		MessageTTL time.Duration // 0 means never
		Storage    Storage
		Replicas   int64 // 0 means as many as there should be
		Streams    int64
		MaxBytes   Size // 0 means no limit
		Memory     Size // 0 means half of what the process may use
	}
	Drain struct {
		Timeout time.Duration
	}
	Quotas struct {
		Connections      int64 // 0 means unlimited
		MessagesPerMonth int64 // 0 means unlimited

		AppConnections      int64 // 0 means unlimited
		AppMessagesPerMonth int64 // 0 means unlimited

		Topics           int64 // 0 means unlimited
		DocumentBytes    int64 // 0 means unlimited
		AppTopics        int64 // 0 means unlimited
		AppDocumentBytes int64 // 0 means unlimited
	}
	Limits struct {
		ConnectionsPerAddress int64 // 0 means unlimited
		TopicsPerApp          int64 // that subscribers can make; 0 means unlimited
		SignupsPerAddress     int64 // see the method of this name
	}
	Telemetry struct {
		Endpoint      string // empty: nothing is traced
		Headers       freshet.Secret
		SamplePercent int64
	}
	Usage struct {
		Retention time.Duration
	}
	TrustedProxies []netip.Prefix
}

// EmbeddedNATS in place of URLs runs a NATS server in the process.
const EmbeddedNATS = "embedded"

// Storage is where NATS keeps its streams.
type Storage string

// The kinds of storage.
const (
	StorageFile   Storage = "file"
	StorageMemory Storage = "memory"
)

// Environment says how strict the server is.
type Environment string

// The environments. Development makes first steps easy; production refuses what is only safe on a developer's machine.
const (
	Development Environment = "development"
	Production  Environment = "production"
)

// Role is one way into the service that a process can offer.
type Role string

// The roles. What each of them needs is the server's business.
const (
	RoleGateway   Role = "gateway"
	RoleManage    Role = "manage"
	RolePublish   Role = "publish"
	RolePoll      Role = "poll"
	RoleSubscribe Role = "subscribe"
)

// Roles lists every role, in the order in which people read them.
func Roles() []Role {
	return []Role{RoleGateway, RoleManage, RolePublish, RolePoll, RoleSubscribe}
}

// Signup says who may create accounts.
type Signup string

// The ways of signing up.
const (
	SignupOpen  Signup = "open"
	SignupAdmin Signup = "admin"
)

// LogFormat is how log lines are written.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Has reports whether the process offers the role.
func (s *Settings) Has(r Role) bool {
	for _, have := range s.Roles {
		if have == r {
			return true
		}
	}
	return false
}

// signupsInProduction is how many accounts one address may make in an hour unless the settings say otherwise.
const signupsInProduction = 20

// SignupsPerAddress is how many accounts strangers may make from one address in an hour; 0 means unlimited.
func (s *Settings) SignupsPerAddress() int64 {
	switch {
	case s.Limits.SignupsPerAddress != automatic:
		return s.Limits.SignupsPerAddress
	case s.Environment == Production:
		return signupsInProduction
	}
	return 0
}
