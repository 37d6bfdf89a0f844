package freshet

import "time"

// App groups topics of one user; all of them share the app's keys.
type App struct {
	ID                      string
	UserID                  string
	Name                    string
	AutoProvisioningAllowed bool
	SignatureRequired       bool
	Defaults                Defaults
	AllowedTargetHosts      []string // that its pollers may reach; empty: all
	Quotas                  Quotas   // RequestsPerMinute limits publications
	SubscriberKey           Key
	PublisherKey            Key
	SignatureKey            Key
	CreatedAt               time.Time
	UpdatedAt               time.Time
}

// Defaults are what topics of an app take where they set nothing themselves. A nil pointer means the app sets
// nothing either, and the service's own default applies.
type Defaults struct {
	PollEvery       *time.Duration
	ForcePublishing *bool
}

// What applies when neither the topic nor its app says anything.
const (
	DefaultPollEvery       = 2 * time.Second
	DefaultForcePublishing = true
)

// Bounds of a polling interval. The lower one protects targets, the upper one catches mistaken units.
const (
	MinPollEvery = 100 * time.Millisecond
	MaxPollEvery = 24 * time.Hour
)

const maxTitle = 200 // characters in the name of an app or a topic

// EffectivePollEvery is the interval a poller topic of the app gets when it sets none.
func (d Defaults) EffectivePollEvery() time.Duration {
	if d.PollEvery != nil {
		return *d.PollEvery
	}
	return DefaultPollEvery
}

// EffectiveForcePublishing is the rule a post topic of the app gets when it sets none.
func (d Defaults) EffectiveForcePublishing() bool {
	if d.ForcePublishing != nil {
		return *d.ForcePublishing
	}
	return DefaultForcePublishing
}

// Validate names every field that is missing or out of range.
func (a *App) Validate() error {
	var f faults
	f.checkText("name", a.Name, maxTitle)
	f.checkPollEvery("default_configurations.http-poller.polling_frequency", a.Defaults.PollEvery)
	f.checkTargetHosts("allowed_target_hosts", a.AllowedTargetHosts)
	f.checkQuotas(a.Quotas)
	return f.err()
}

func (f *faults) checkPollEvery(field string, every *time.Duration) {
	if every != nil && (*every < MinPollEvery || *every > MaxPollEvery) {
		f.add(field, "must be between %d and %d milliseconds", MinPollEvery.Milliseconds(), MaxPollEvery.Milliseconds())
	}
}

// Key returns the app's current key of the kind.
func (a *App) Key(kind KeyKind) Key {
	switch kind {
	case SubscriberKey:
		return a.SubscriberKey
	case PublisherKey:
		return a.PublisherKey
	default:
		return a.SignatureKey
	}
}

// SetKey puts a key in its place.
func (a *App) SetKey(kind KeyKind, key Key) {
	switch kind {
	case SubscriberKey:
		a.SubscriberKey = key
	case PublisherKey:
		a.PublisherKey = key
	case SignatureKey:
		a.SignatureKey = key
	}
}
