package settings

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
)

// Entry is one setting. Its key names it everywhere: subscriber.listen in the file is --subscriber-listen on the
// command line and FRESHET_SUBSCRIBER_LISTEN in the environment.
type Entry struct {
	Key     string
	Default string // as a person would write it
	Help    string // one sentence, without the default and the full stop
	Main    bool   // among the first flags that --help shows
	Privacy Privacy
	value
}

// Privacy says how much of a value may be shown.
type Privacy int

// The levels of privacy. Values that are not Open can also be read from a file named by a *_FILE variable.
const (
	Open        Privacy = iota
	Credentials         // a URL: all but the password in it may be shown
	Hidden              // nothing may be shown
)

// table has every setting. Groups stay together, and the order is the one people see.
var table = []Entry{
	{
		Key: "environment", Main: true, Default: "development",
		Help:  "How strict to be; production requires subscriber keys, checks poll targets and refuses the fixed admin password",
		value: bind(func(s *Settings) *Environment { return &s.Environment }, enum(Development, Production)),
	}, {
		Key: "data", Main: true, Default: "./freshet-data",
		Help:  "Directory of the embedded database and of the file with its secret; made at first start",
		value: bind(func(s *Settings) *string { return &s.Data }, text("DIR", "a directory")),
	}, {
		Key: "database", Main: true, Default: "", Privacy: Credentials,
		Help:  "PostgreSQL to use instead of the embedded database, postgres://…",
		value: bind(func(s *Settings) *freshet.Secret { return &s.Database }, hiddenText("URL", "empty, or a URL such as postgres://user:password@host:5432/freshet", checkDatabase)),
	}, {
		Key: "nats", Main: true, Default: "", Privacy: Credentials,
		Help:  "NATS servers that join several nodes to a cluster, nats://…, or embedded to run one in this process",
		value: bind(func(s *Settings) *freshet.Secret { return &s.NATS }, hiddenText("URL,…", validNATS, checkNATS)),
	}, {
		Key: "nats_peers", Default: "",
		Help:  "Where the embedded NATS servers of all nodes listen to each other; the same list on every node",
		value: bind(func(s *Settings) *[]string { return &s.NATSPeers }, list(peer(), true)),
	}, {
		Key: "nats_listen", Default: "",
		Help:  "Address at which the embedded NATS server takes clients of other processes; empty is none",
		value: bind(func(s *Settings) *string { return &s.NATSListen }, optionalListen()),
	}, {
		Key: "nats_cluster_listen", Default: ":6222",
		Help:  "Address at which the embedded NATS server takes its peers; used with nats_peers only",
		value: bind(func(s *Settings) *string { return &s.NATSClusterListen }, listen()),
	}, {
		Key: "nats_secret", Default: "", Privacy: Hidden,
		Help:  "What embedded NATS servers and their clients must know to connect; the same on every node",
		value: bind(func(s *Settings) *freshet.Secret { return &s.NATSSecret }, hiddenText("SECRET", "any text", func(string) error { return nil })),
	}, {
		Key: "nats_credentials", Default: "",
		Help:  "File with the NATS credentials of this service",
		value: bind(func(s *Settings) *string { return &s.NATSCredentials }, optionalText("FILE", "empty, or a credentials file")),
	}, {
		Key: "nats_ca", Default: "",
		Help:  "PEM file with the authorities that sign the certificates of the NATS servers, instead of the system's",
		value: bind(func(s *Settings) *string { return &s.NATSCA }, optionalText("FILE", "empty, or a PEM file")),
	}, {
		Key: "nats_certificate", Default: "",
		Help:  "PEM file with the certificate by which this service is known to the NATS servers",
		value: bind(func(s *Settings) *string { return &s.NATSCertificate }, optionalText("FILE", "empty, or a PEM file")),
	}, {
		Key: "nats_key", Default: "",
		Help:  "PEM file with the private key of nats_certificate",
		value: bind(func(s *Settings) *string { return &s.NATSKey }, optionalText("FILE", "empty, or a PEM file")),
	}, {
		Key: "nats_prefix", Default: "freshet",
		Help:  "First part of all subjects and streams, so that several services can share NATS servers",
		value: bind(func(s *Settings) *string { return &s.NATSPrefix }, subjectPrefix()),
	}, {
		Key: "roles", Main: true, Default: "gateway,manage,publish,poll,subscribe",
		Help:  "What this process does",
		value: bind(func(s *Settings) *[]Role { return &s.Roles }, list(enum(Roles()...), false)),
	}, {
		Key: "signup", Default: "open",
		Help:  "Who may create accounts: anybody, or only the administrator",
		value: bind(func(s *Settings) *Signup { return &s.Signup }, enum(SignupOpen, SignupAdmin)),
	}, {
		Key: "trusted_proxies", Default: "",
		Help:  "Networks whose X-Forwarded-For is believed",
		value: bind(func(s *Settings) *[]netip.Prefix { return &s.TrustedProxies }, list(cidr(), true)),
	}, {
		Key: "distribution", Default: string(freshet.DistributionBinary),
		Help:  "How the program was installed; container images set it, and without an activation key it limits them to the beta edition",
		value: bind(func(s *Settings) *freshet.Distribution { return &s.Distribution }, enum(freshet.DistributionBinary, freshet.DistributionContainer)),
	}, {
		Key: "gateway.listen", Main: true, Default: ":8000",
		Help:  "Address of the gateway: management and publishing APIs, API browser",
		value: bind(func(s *Settings) *string { return &s.Gateway.Listen }, listen()),
	}, {
		Key: "gateway.connect_timeout", Default: "5s",
		Help:  "How long connecting to the upstream of a registered API may take",
		value: bind(func(s *Settings) *time.Duration { return &s.Gateway.ConnectTimeout }, duration(10*time.Millisecond, 10*time.Minute)),
	}, {
		Key: "gateway.response_timeout", Default: "1m",
		Help:  "How long an upstream may take to begin its answer",
		value: bind(func(s *Settings) *time.Duration { return &s.Gateway.ResponseTimeout }, duration(10*time.Millisecond, time.Hour)),
	}, {
		Key: "gateway.manage_url", Default: "",
		Help:  "Where the management API runs, if not in this process; its gateway listener, such as http://manage:8000",
		value: bind(func(s *Settings) *string { return &s.Gateway.ManageURL }, httpURL()),
	}, {
		Key: "gateway.publish_url", Default: "",
		Help:  "Where the publishing API runs, if not in this process; its gateway listener, such as http://publish:8000",
		value: bind(func(s *Settings) *string { return &s.Gateway.PublishURL }, httpURL()),
	}, {
		Key: "subscriber.listen", Main: true, Default: ":6080",
		Help:  "Address of the subscriber interface: event streams",
		value: bind(func(s *Settings) *string { return &s.Subscriber.Listen }, listen()),
	}, {
		Key: "subscriber.public_url", Default: "",
		Help:  "URL under which browsers reach the subscriber interface, such as https://events.example.com; empty is the port of subscriber.listen on the host of the console",
		value: bind(func(s *Settings) *string { return &s.Subscriber.PublicURL }, publicURL()),
	}, {
		Key: "subscriber.heartbeat", Default: "10s",
		Help:  "How often an idle stream gets a comment that keeps it open",
		value: bind(func(s *Settings) *time.Duration { return &s.Subscriber.Heartbeat }, duration(100*time.Millisecond, time.Hour)),
	}, {
		Key: "subscriber.write_timeout", Default: "30s",
		Help:  "Close a stream whose reader takes nothing for this long",
		value: bind(func(s *Settings) *time.Duration { return &s.Subscriber.WriteTimeout }, duration(100*time.Millisecond, time.Hour)),
	}, {
		Key: "subscriber.snapshot_event", Default: "snapshot",
		Help:  "Event name of full documents; data suits old clients",
		value: bind(func(s *Settings) *string { return &s.Subscriber.SnapshotEvent }, enum("snapshot", "data")),
	}, {
		Key: "subscriber.snapshot_timeout", Default: "30s",
		Help:  "End a stream of a polled topic that has no document after this long",
		value: bind(func(s *Settings) *time.Duration { return &s.Subscriber.SnapshotTimeout }, duration(100*time.Millisecond, time.Hour)),
	}, {
		Key: "poller.deny_private", Default: "false",
		Help:  "Keep pollers from private, loopback, link-local and other internal addresses; production always does",
		value: bind(func(s *Settings) *bool { return &s.Poller.DenyPrivate }, boolean()),
	}, {
		Key: "poller.error_threshold", Default: "3",
		Help:  "Failed polls in a row after which subscribers that have a document are told",
		value: bind(func(s *Settings) *int64 { return &s.Poller.ErrorThreshold }, count(1_000_000)),
	}, {
		Key: "poller.host_concurrency", Default: "256",
		Help:  "Requests under way to one host and port at a time; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Poller.HostConcurrency }, count(1_000_000)),
	}, {
		Key: "poller.concurrency", Default: "4096",
		Help:  "Requests of all pollers under way at a time; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Poller.Concurrency }, count(1_000_000)),
	}, {
		Key: "admin.listen", Main: true, Default: "127.0.0.1:8001",
		Help:  "Address of gateway administration, health, metrics and profiling; without admin.token it asks for no password, so keep it private",
		value: bind(func(s *Settings) *string { return &s.Admin.Listen }, listen()),
	}, {
		Key: "admin.token", Default: "", Privacy: Hidden,
		Help:  "Token that the administration listener asks for, health checks excepted; production insists on one unless it is loopback only",
		value: bind(func(s *Settings) *freshet.Secret { return &s.Admin.Token }, hiddenText("TOKEN", "empty, or at least 16 characters", checkAdminToken)),
	}, {
		Key: "admin.email", Main: true, Default: freshet.FixedAdminEmail,
		Help:  "E-mail of the administrator whom the first start creates; SDIO_admin_email works too",
		value: bind(func(s *Settings) *string { return &s.Admin.Email }, email()),
	}, {
		Key: "admin.password", Main: true, Default: freshet.FixedAdminPassword, Privacy: Hidden,
		Help:  "Password of the administrator whom the first start creates",
		value: bind(func(s *Settings) *freshet.Secret { return &s.Admin.Password }, hiddenText("PASSWORD", "at least 8 characters", checkAdminPassword)),
	}, {
		Key: "tls.certificate", Default: "",
		Help:  "PEM file with the certificate chain of the gateway and subscriber listeners, read again when it changes; empty is plain HTTP",
		value: bind(func(s *Settings) *string { return &s.TLS.Certificate }, optionalText("FILE", "empty, or a PEM file")),
	}, {
		Key: "tls.key", Default: "",
		Help:  "PEM file with the private key of tls.certificate",
		value: bind(func(s *Settings) *string { return &s.TLS.Key }, optionalText("FILE", "empty, or a PEM file")),
	}, {
		Key: "token.secret", Default: "", Privacy: Hidden,
		Help:  "Secret that signs session tokens and seals credentials, the same on every node; empty is the one in secret.key of the data directory, or with PostgreSQL one in the database",
		value: bind(func(s *Settings) *freshet.Secret { return &s.Token.Secret }, hiddenText("SECRET", "at least 32 characters", checkTokenSecret)),
	}, {
		Key: "token.previous_secret", Default: "", Privacy: Hidden,
		Help:  "What token.secret was before; it opens credentials until freshet secrets rotate has sealed them again, and signs nothing",
		value: bind(func(s *Settings) *freshet.Secret { return &s.Token.PreviousSecret }, hiddenText("SECRET", "at least 32 characters", checkTokenSecret)),
	}, {
		Key: "token.lifetime", Default: "24h",
		Help:  "How long a session token is good for",
		value: bind(func(s *Settings) *time.Duration { return &s.Token.Lifetime }, duration(time.Second, 365*24*time.Hour)),
	}, {
		Key: "activation.key", Default: "", Privacy: Hidden,
		Help:  "Activation key that names the edition; a bad or expired one keeps the server from starting",
		value: bind(func(s *Settings) *freshet.Secret { return &s.Activation.Key }, hiddenText("KEY", "empty, or an activation key", checkActivationKey)),
	}, {
		Key: "activation.public_key", Default: "",
		Help:  "Public key of the issuer whose activation keys are good here, instead of the project's",
		value: bind(func(s *Settings) *string { return &s.Activation.PublicKey }, activationIssuer()),
	}, {
		Key: "log.format", Main: true, Default: "text",
		Help:  "How log lines are written",
		value: bind(func(s *Settings) *LogFormat { return &s.Log.Format }, enum(LogText, LogJSON)),
	}, {
		Key: "log.level", Default: "info",
		Help:  "The least severe lines to log",
		value: bind(func(s *Settings) *slog.Level { return &s.Log.Level }, level()),
	}, {
		Key: "manage.requests_per_minute", Default: "6000",
		Help:  "Management requests of one user in a minute; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Manage.RequestsPerMinute }, count(freshet.MaxQuota)),
	}, {
		Key: "publish.requests_per_minute", Default: "600000",
		Help:  "Publications to one app in a minute; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Publish.RequestsPerMinute }, count(freshet.MaxQuota)),
	}, {
		Key: "publish.max_body", Default: "4MiB",
		Help:  "Largest publication",
		value: bind(func(s *Settings) *Size { return &s.Publish.MaxBody }, size(KiB, 64*MiB)),
	}, {
		Key: "grid.message_ttl", Default: "24h",
		Help:  "Drop a document this long after its last publication; 0s is never",
		value: bind(func(s *Settings) *time.Duration { return &s.Grid.MessageTTL }, duration(0, 10*365*24*time.Hour)),
	}, {
		Key: "grid.storage", Default: "file",
		Help:  "Where NATS keeps documents; memory is quicker and forgets them when its servers restart",
		value: bind(func(s *Settings) *Storage { return &s.Grid.Storage }, enum(StorageFile, StorageMemory)),
	}, {
		Key: "grid.replicas", Default: "0",
		Help:  "How many NATS servers keep each document; 0 is 3 in a cluster of servers, 2 on two embedded ones and 1 on a single one",
		value: bind(func(s *Settings) *int64 { return &s.Grid.Replicas }, count(5)),
	}, {
		Key: "grid.streams", Default: "1",
		Help:  "Over how many NATS streams documents are spread; it cannot be changed while they hold any",
		value: bind(func(s *Settings) *int64 { return &s.Grid.Streams }, powerOfTwo(16)),
	}, {
		Key: "grid.max_bytes", Default: "0B",
		Help:  "Most that one NATS stream may hold; beyond it publications are refused; 0 is no limit",
		value: bind(func(s *Settings) *Size { return &s.Grid.MaxBytes }, size(0, 1<<50)),
	}, {
		Key: "grid.memory", Default: "0B",
		Help:  "Most memory that documents and their histories may take in this process; beyond it publications are refused; 0 is a quarter of what the process may use",
		value: bind(func(s *Settings) *Size { return &s.Grid.Memory }, size(0, 1<<50)),
	}, {
		Key: "drain.timeout", Default: "30s",
		Help:  "How long requests and streams may take to finish after SIGTERM; streams end at 500 a second, or faster if there are more",
		value: bind(func(s *Settings) *time.Duration { return &s.Drain.Timeout }, duration(100*time.Millisecond, time.Hour)),
	}, {
		Key: "quotas.connections", Default: "0",
		Help:  "Streams that one account may hold, unless it has a quota of its own; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Quotas.Connections }, count(freshet.MaxQuota)),
	}, {
		Key: "quotas.messages_per_month", Default: "0",
		Help:  "Messages that one account may receive in a month, unless it has a quota of its own; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Quotas.MessagesPerMonth }, count(freshet.MaxQuota)),
	}, {
		Key: "quotas.app_connections", Default: "0",
		Help:  "Streams that one app may hold, unless it has a quota of its own; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Quotas.AppConnections }, count(freshet.MaxQuota)),
	}, {
		Key: "quotas.app_messages_per_month", Default: "0",
		Help:  "Messages that the subscribers of one app may receive in a month, unless it has a quota of its own; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Quotas.AppMessagesPerMonth }, count(freshet.MaxQuota)),
	}, {
		Key: "quotas.topics", Default: "0",
		Help:  "Topics that one account may have, unless it has a quota of its own; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Quotas.Topics }, count(freshet.MaxQuota)),
	}, {
		Key: "quotas.document_bytes", Default: "0",
		Help:  "Bytes that the newest documents of one account may have together, unless it has a quota of its own; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Quotas.DocumentBytes }, count(freshet.MaxQuota)),
	}, {
		Key: "quotas.app_topics", Default: "0",
		Help:  "Topics that one app may have, unless it has a quota of its own; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Quotas.AppTopics }, count(freshet.MaxQuota)),
	}, {
		Key: "quotas.app_document_bytes", Default: "0",
		Help:  "Bytes that the newest documents of one app may have together, unless it has a quota of its own; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Quotas.AppDocumentBytes }, count(freshet.MaxQuota)),
	}, {
		Key: "limits.connections_per_address", Default: "0",
		Help: "Connections, and streams of HTTP/2 on them, that one address, or one /64 of IPv6, may have open to a public listener, " +
			"except trusted_proxies; 0 leaves others a twentieth of the files that the process may open",
		value: bind(func(s *Settings) *int64 { return &s.Limits.ConnectionsPerAddress }, count(1_000_000)),
	}, {
		Key: "limits.topics_per_app", Default: "10000",
		Help:  "Topics that an app may have before its subscribers can make no more of them by naming URLs; 0 is unlimited",
		value: bind(func(s *Settings) *int64 { return &s.Limits.TopicsPerApp }, count(10_000_000)),
	}, {
		Key: "limits.signups_per_address", Default: auto,
		Help: "Accounts that strangers may make from one address, or one /64 of IPv6, in an hour; 0 is unlimited, and auto is 20 in production " +
			"and unlimited in development",
		value: bind(func(s *Settings) *int64 { return &s.Limits.SignupsPerAddress }, autoCount(1_000_000)),
	}, {
		Key: "telemetry.endpoint", Default: "",
		Help:  "OpenTelemetry collector that is sent traces over OTLP/HTTP, such as http://localhost:4318; empty sends none",
		value: bind(func(s *Settings) *string { return &s.Telemetry.Endpoint }, httpURL()),
	}, {
		Key: "telemetry.headers", Default: "", Privacy: Hidden,
		Help:  "Headers for the collector, such as Authorization: Bearer …; several are separated by commas",
		value: bind(func(s *Settings) *freshet.Secret { return &s.Telemetry.Headers }, hiddenText("NAME: VALUE,…", validHeaders, checkHeaders)),
	}, {
		Key: "telemetry.sample_percent", Default: "100",
		Help:  "How many of a hundred publications and polls are traced; one that comes with a traceparent is traced if its sender traces it",
		value: bind(func(s *Settings) *int64 { return &s.Telemetry.SamplePercent }, count(100)),
	}, {
		Key: "usage.retention", Default: "2160h",
		Help:  "How long the usage of each hour is kept; 2160h is 90 days",
		value: bind(func(s *Settings) *time.Duration { return &s.Usage.Retention }, duration(24*time.Hour, 10*365*24*time.Hour)),
	},
}

const prefix = "FRESHET_"

// Entries lists every setting in the order in which people read them.
func Entries() []Entry { return table }

// Flag is the setting's name on the command line, without the dashes.
func (e *Entry) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(e.Key) }

// Variable is the setting's name in the environment.
func (e *Entry) Variable() string {
	return prefix + strings.ToUpper(strings.ReplaceAll(e.Key, ".", "_"))
}

// FileVariable names a file to read the value from; empty when the setting holds nothing private.
func (e *Entry) FileVariable() string {
	if e.Privacy == Open {
		return ""
	}
	return e.Variable() + "_FILE"
}

// Placeholder stands for the value in help texts.
func (e *Entry) Placeholder() string { return e.placeholder }

// Choices are the words the setting accepts, when it accepts only certain ones.
func (e *Entry) Choices() []string { return e.choices }

// IsList reports whether the setting takes several values.
func (e *Entry) IsList() bool { return e.isList }

const hidden = "[hidden]"

// show is the value as it may be shown to anybody.
func (e *Entry) show(value string) string {
	switch {
	case value == "":
		return ""
	case e.Privacy == Hidden:
		return hidden
	case e.Privacy == Credentials:
		return redacted(value)
	}
	return value
}

// value ties a setting to its field in Settings and to the syntax of its values.
type value struct {
	placeholder string
	valid       string
	choices     []string
	isList      bool
	set         func(*Settings, string) error // leaves the field alone when it refuses the text
	get         func(*Settings) string
}

func bind[T any](at func(*Settings) *T, s syntax[T]) value {
	return value{
		placeholder: s.placeholder,
		valid:       s.valid,
		choices:     s.choices,
		isList:      s.isList,
		get:         func(all *Settings) string { return s.format(*at(all)) },
		set: func(all *Settings, text string) error {
			v, err := s.parse(text)
			if err == nil {
				*at(all) = v
			}
			return err
		},
	}
}

// complaint turns the error about a text into what is shown about it.
func (e *Entry) complaint(text string, err error) string {
	r, ok := errors.AsType[*valueError](err)
	if !ok || r.whole || e.Privacy != Open {
		return err.Error()
	}
	if r.given != "" {
		text = r.given
	}
	return r.must + ", not " + quote(text) + didYouMean(text, e.choices)
}

// keys, variables and flags are what names are compared with when one is not known.

func keys() []string { return names(func(e *Entry) string { return e.Key }) }

// groups are the first parts of keys, which have lines of their own in the file.
func groups() []string {
	var all []string
	for i := range table {
		if group, _, nested := strings.Cut(table[i].Key, "."); nested && !slices.Contains(all, group) {
			all = append(all, group)
		}
	}
	return all
}

func variables() []string { return names((*Entry).Variable) }

// Flags lists the names of every flag a command with settings takes, without the dashes.
func Flags() []string { return append(names((*Entry).Flag), ConfigFlag) }

func names(of func(*Entry) string) []string {
	all := make([]string, 0, len(table)+1)
	for i := range table {
		all = append(all, of(&table[i]))
	}
	return all
}
