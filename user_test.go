package freshet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// faultsOf are the fields that an error names.
func faultsOf(t *testing.T, err error) map[string]string {
	t.Helper()
	found := map[string]string{}
	if err == nil {
		return found
	}
	e, ok := err.(*Error)
	if !ok || e.Kind != Invalid || e.Msg == "" {
		t.Fatalf("%v is not about fields", err)
	}
	for _, f := range e.Fields {
		if found[f.Field] != "" {
			t.Errorf("%s is named twice", f.Field)
		}
		found[f.Field] = f.Message
	}
	return found
}

func wantFaults(t *testing.T, what string, err error, want map[string]string) {
	t.Helper()
	if want == nil {
		want = map[string]string{}
	}
	if diff := cmp.Diff(want, faultsOf(t, err)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func ada() User {
	return User{Email: "ada@example.com", FirstName: "Ada", LastName: "Lovelace", Language: "en_GB",
		Role: RoleUser, Status: StatusActive, Quotas: DefaultQuotas}
}

func TestAUserIsCheckedFieldByField(t *testing.T) {
	const quota = "must be between 0 (unlimited) and 1125899906842624"
	for name, test := range map[string]struct {
		change func(*User)
		want   map[string]string
	}{
		"good": {func(*User) {}, nil},
		"empty": {func(u *User) { *u = User{Quotas: DefaultQuotas} }, map[string]string{"email": "is required", "first_name": "is required",
			"last_name": "is required", "language": "is required", "role": "must be one of user, admin", "status": "must be one of active, disabled"}},
		"blank":          {func(u *User) { u.FirstName = "\t\u3000" }, map[string]string{"first_name": "must not be blank"}},
		"long, in runes": {func(u *User) { u.FirstName, u.LastName = strings.Repeat("é", 100), strings.Repeat("é", 101) }, map[string]string{"last_name": "is longer than 100 characters"}},
		"bad UTF-8":      {func(u *User) { u.LastName = "a\xff" }, map[string]string{"last_name": "is not valid UTF-8"}},
		"control":        {func(u *User) { u.LastName = "a\u0085" }, map[string]string{"last_name": "contains a control character"}},
		"quotas": {func(u *User) { u.Quotas = Quotas{-2, MaxQuota + 1, 0, -2, MaxQuota + 1} },
			map[string]string{"quotas.connections": quota, "quotas.messages_per_month": quota, "quotas.topics": quota, "quotas.document_bytes": quota}},
		"highest quotas": {func(u *User) { u.Quotas = Quotas{MaxQuota, MaxQuota, MaxQuota, MaxQuota, MaxQuota} }, nil},
	} {
		u := ada()
		test.change(&u)
		wantFaults(t, name, u.Validate(), test.want)
	}
}

func TestAnEMailIsAPlainAddress(t *testing.T) {
	for _, email := range []string{"a@b", "ada@example.com", "a.b+c@sub.example.co.uk", "ünï@exämple.com", "用户@例子.中国", "o'hara@example.com", "admin@freshet.local",
		strings.Repeat("a", 64) + "@example.com"} {
		u := ada()
		u.Email = email
		wantFaults(t, email, u.Validate(), nil)
	}
	for _, email := range []string{"ada", "@example.com", "ada@", "a@b@c", "ada@example.com ", " ada@example.com", "ada @example.com", "Ada <ada@example.com>",
		"<ada@example.com>", `"ada"@example.com`, "ada@[192.0.2.1]", "ada@.com", "ada@example.", "ada@-example.com", "ada@example-", "a..b@example.com",
		"ada@example..com", "ada,eve@example.com", "ada@example.com, eve@example.com", "ada@example.com\n", "ada\x00@example.com", "(x)ada@example.com", "ada@ex ample.com"} {
		u := ada()
		u.Email = email
		wantFaults(t, email, u.Validate(), map[string]string{"email": "must be an e-mail address like name@example.com"})
	}
}

func TestALanguageIsALocale(t *testing.T) {
	for language, good := range map[string]bool{"fr_FR": true, "en_GB": true, "fil_PH": true, "fr": false, "fr-FR": false, "FR_fr": false, "fr_fr": false,
		"french": false, "fr_FR\n": false, " fr_FR": false, "fr_FRA": false, "ﬀ_FR": false} {
		u := ada()
		u.Language = language
		want := map[string]string{"language": "must be a locale like fr_FR"}
		if good {
			want = nil
		}
		wantFaults(t, language, u.Validate(), want)
	}
}

func TestAPasswordHasAtLeastEightCharactersAndABound(t *testing.T) {
	for password, want := range map[string]string{
		"": "is required", "1234567": "must have at least 8 characters", "ééééééé": "must have at least 8 characters", "12345678": "", "éééééééé": "",
		"        ": "", "pass\x00word": "", strings.Repeat("a", 256): "", strings.Repeat("a", 257): "is longer than 256 bytes",
		strings.Repeat("é", 129): "is longer than 256 bytes", "1234567\xff": "is not valid UTF-8",
	} {
		var faults map[string]string
		if want != "" {
			faults = map[string]string{"password": want}
		}
		err := ValidatePassword(password)
		wantFaults(t, password, err, faults)
		if err != nil && password != "" && strings.Contains(err.Error(), password) {
			t.Errorf("%v repeats the password", err)
		}
	}
}

func TestCaseDoesNotDistinguishPeople(t *testing.T) {
	if EmailKey("Ada@Example.COM") != EmailKey("ada@example.com") || EmailKey("É@x") != EmailKey("é@x") || EmailKey("a@x") == EmailKey("b@x") {
		t.Error("e-mail keys")
	}
}

func TestAnAccountTakesTheServersQuotasWhereItHasNone(t *testing.T) {
	server := Quotas{Connections: 1, MessagesPerMonth: 2, RequestsPerMinute: 3, Topics: 4, DocumentBytes: 5}
	if got := DefaultQuotas.Or(server); got != server {
		t.Errorf("%+v", got)
	}
	if got := (Quotas{0, ServersQuota, 9, 0, 8}).Or(server); got != (Quotas{0, 2, 9, 0, 8}) {
		t.Errorf("%+v", got)
	}
}
