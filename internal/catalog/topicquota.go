package catalog

import (
	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// lockedApp is an app that nobody else can add topics to, nor to another app of its account if that has a quota of them.
type lockedApp struct {
	*freshet.App
	quota        int64 // of its topics; 0 is any number
	accountQuota int64 // of those of all apps of its account
}

// lockForTopics locks an app for whoever is about to add a topic. Topics of an account are counted over all its apps, so a quota
// of them takes the lock of the account as well, which comes first. Without one, apps do not wait for each other.
func (c *Catalog) lockForTopics(tx *store.Tx, appID string) (*lockedApp, error) {
	account, err := tx.AccountOf(appID)
	if err != nil {
		return nil, err
	}
	if account.Quotas.Or(c.opts.Quotas).Topics > 0 {
		if account, err = tx.LockUser(account.ID); err != nil {
			return nil, err
		}
	}
	app, err := tx.LockApp(appID)
	if err != nil {
		return nil, err
	}
	return &lockedApp{App: app, quota: app.Quotas.Or(c.opts.AppQuotas).Topics, accountQuota: account.Quotas.Or(c.opts.Quotas).Topics}, nil
}

// checkTopics refuses a topic more than the quotas allow. The transaction that counts adds it, so two of them cannot have the
// same last place.
func (a *lockedApp) checkTopics(tx *store.Tx) error {
	if a.quota > 0 {
		if n, err := tx.TopicCount(a.ID); err != nil || n >= a.quota {
			return tooManyTopics(err, "app", n, a.quota)
		}
	}
	if a.accountQuota > 0 {
		if n, err := tx.UserTopicCount(a.UserID); err != nil || n >= a.accountQuota {
			return tooManyTopics(err, "account", n, a.accountQuota)
		}
	}
	return nil
}

func tooManyTopics(err error, noun string, n, quota int64) error {
	if err != nil {
		return err
	}
	return freshet.Errorf(freshet.TopicLimit, "The %s has %d topics, and its quota topics is %d: delete some, or ask an admin for more", noun, n, quota)
}
