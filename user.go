package freshet

import (
	"net/mail"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// User owns apps. The password is not part of it: only its hash exists, and only in the catalog's hands.
type User struct {
	ID        string
	Email     string
	FirstName string
	LastName  string
	Language  string
	Role      Role
	Status    Status
	Quotas    Quotas
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Role says whether a user may use the admin API.
type Role string

// The roles of a user.
const (
	RoleUser  Role = "user"
	RoleAdmin Role = "admin"
)

// Status says whether an account is in use.
type Status string

// The states of an account. A disabled one cannot sign in, publish or subscribe; nothing of it is deleted.
const (
	StatusActive   Status = "active"
	StatusDisabled Status = "disabled"
)

// Quotas limit an account or one of its apps; 0 means unlimited and negative means "the server's default".
type Quotas struct {
	Connections       int64
	MessagesPerMonth  int64
	RequestsPerMinute int64
	Topics            int64
	DocumentBytes     int64 // of the newest documents together, as compact JSON
}

// ServersQuota leaves one limit to the server's settings.
const ServersQuota = -1

// DefaultQuotas leaves every limit to the server's settings.
var DefaultQuotas = Quotas{
	Connections: ServersQuota, MessagesPerMonth: ServersQuota, RequestsPerMinute: ServersQuota, Topics: ServersQuota, DocumentBytes: ServersQuota,
}

// Or takes the server's limits where there are none of its own.
func (q Quotas) Or(server Quotas) Quotas {
	pick := func(own, def int64) int64 {
		if own < 0 {
			return def
		}
		return own
	}
	return Quotas{
		Connections:       pick(q.Connections, server.Connections),
		MessagesPerMonth:  pick(q.MessagesPerMonth, server.MessagesPerMonth),
		RequestsPerMinute: pick(q.RequestsPerMinute, server.RequestsPerMinute),
		Topics:            pick(q.Topics, server.Topics),
		DocumentBytes:     pick(q.DocumentBytes, server.DocumentBytes),
	}
}

// The admin that the first start creates where the settings name no other. The password is public knowledge, which is why
// production refuses it.
const (
	FixedAdminEmail    = "admin@freshet.local"
	FixedAdminPassword = "freshet-admin"
)

// MaxQuota bounds every quota, so that sums over an account cannot overflow.
const MaxQuota = 1 << 50

// Limits on the text of an account. 254 is the longest address SMTP can carry.
const (
	maxEmail    = 254
	maxName     = 100
	minPassword = 8
)

// MaxPassword is the longest password in bytes. It bounds what one sign-in can make us hash.
const MaxPassword = 256

var locale = regexp.MustCompile(`^[a-z]{2,3}_[A-Z]{2}$`)

// EmailKey is the form of an e-mail under which accounts are unique: case does not distinguish people.
func EmailKey(email string) string { return strings.ToLower(email) }

// Validate names every field that is missing or malformed.
func (u *User) Validate() error {
	var f faults
	f.checkEmail("email", u.Email)
	f.checkText("first_name", u.FirstName, maxName)
	f.checkText("last_name", u.LastName, maxName)
	switch {
	case u.Language == "":
		f.add("language", "is required")
	case !locale.MatchString(u.Language):
		f.add("language", "must be a locale like fr_FR")
	}
	f.checkEnum("role", string(u.Role), string(RoleUser), string(RoleAdmin))
	f.checkEnum("status", string(u.Status), string(StatusActive), string(StatusDisabled))
	f.checkQuotas(u.Quotas)
	return f.err()
}

// ValidatePassword checks a password that somebody wants to set. It never repeats the password.
func ValidatePassword(password string) error {
	var f faults
	switch n := utf8.RuneCountInString(password); {
	case n == 0:
		f.add("password", "is required")
	case n < minPassword:
		f.add("password", "must have at least %d characters", minPassword)
	case len(password) > MaxPassword:
		f.add("password", "is longer than %d bytes", MaxPassword)
	case !utf8.ValidString(password):
		f.add("password", "is not valid UTF-8")
	}
	return f.err()
}

func (f *faults) checkEmail(field, email string) {
	switch {
	case email == "":
		f.add(field, "is required")
	case len(email) > maxEmail:
		f.add(field, "is longer than %d characters", maxEmail)
	case !looksLikeEmail(email):
		f.add(field, "must be an e-mail address like name@example.com")
	}
}

// looksLikeEmail accepts plain addresses only: no display name, no quoting, no domain literal.
func looksLikeEmail(email string) bool {
	addr, err := mail.ParseAddress(email)
	if err != nil || addr.Name != "" || addr.Address != email || hasControl(email) {
		return false
	}
	local, domain, ok := strings.Cut(email, "@")
	return ok && local != "" && !strings.ContainsAny(domain, "@[] ") && !strings.ContainsAny(local, `" `) &&
		strings.Trim(domain, ".-") == domain && domain != ""
}

func (f *faults) checkEnum(field, value string, allowed ...string) {
	for _, a := range allowed {
		if value == a {
			return
		}
	}
	f.add(field, "must be one of %s", strings.Join(allowed, ", "))
}

func (f *faults) checkQuotas(q Quotas) {
	f.checkQuota("quotas.connections", q.Connections)
	f.checkQuota("quotas.messages_per_month", q.MessagesPerMonth)
	f.checkQuota("quotas.requests_per_minute", q.RequestsPerMinute)
	f.checkQuota("quotas.topics", q.Topics)
	f.checkQuota("quotas.document_bytes", q.DocumentBytes)
}

func (f *faults) checkQuota(field string, n int64) {
	if n < ServersQuota || n > MaxQuota {
		f.add(field, "must be between 0 (unlimited) and %d", int64(MaxQuota))
	}
}
