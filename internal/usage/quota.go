package usage

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// Owner is whose messages are counted together, and may be limited: an account or one of its apps.
type Owner struct {
	userID string
	appID  string // empty: all apps of the account
}

// User is the account with the identifier.
func User(id string) Owner { return Owner{userID: id} }

// App is an app of the account.
func App(id, userID string) Owner { return Owner{userID: userID, appID: id} }

// IsApp reports whether it is an app.
func (o Owner) IsApp() bool { return o.appID != "" }

// ID is its identifier.
func (o Owner) ID() string {
	if o.IsApp() {
		return o.appID
	}
	return o.userID
}

// has reports whether what happens at the place counts for the owner.
func (o Owner) has(appID, userID string) bool {
	return o.userID == userID && (o.appID == "" || o.appID == appID)
}

// account is what is known about an owner whose messages are limited. What all nodes delivered is known from the store, what this
// one delivered since from its own count. As an account comes near its limit every node writes its count down, and reads what the
// others wrote, every second; so over a cluster a limit is noticed about as soon as on a single node.
type account struct {
	limit    int64
	month    time.Time
	written  int64 // by all nodes, when it was last read
	read     time.Time
	flushing int64 // counted here and being written
	counted  int64 // counted here since
	lately   int64 // counted here in the last second or so
	told     bool  // that it is used up
}

// Near its limit is an account that has this part of it left, or what it uses in so many seconds: other nodes may be as busy.
const (
	nearPart    = 10
	nearSeconds = 100
	nearTimeout = 2 * time.Second // of writing; the store may be away, and the quotas of others go on

	consultTimeout = 10 * time.Second // of reading; a store that takes longer is away
)

func (a *account) isNear(now time.Time) bool {
	if a.limit <= 0 || !a.month.Equal(freshet.Month(now)) || a.isSpent(now) {
		return false
	}
	left := a.limit - (a.written + a.flushing + a.counted)
	return left <= a.limit/nearPart || left <= nearSeconds*a.lately
}

// near returns the accounts that are near their limits, or whose apps are, and begins to count what they use lately anew.
func (m *Meter) near(now time.Time) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all map[string]bool
	for of, a := range m.accounts {
		if a.isNear(now) {
			if all == nil {
				all = make(map[string]bool)
			}
			all[of.userID] = true
		}
		a.lately = 0
	}
	return all
}

// flushNear keeps nodes up to date with each other about accounts that are near their limits.
func (m *Meter) flushNear(now time.Time) {
	near := m.near(now)
	if len(near) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), nearTimeout)
	defer cancel()
	if err := m.flush(ctx, selection{users: near, refresh: true}); err != nil {
		m.log.Debug("usage near a quota could not be written down; it is kept for the next time", "err", err)
	}
}

func (a *account) isSpent(now time.Time) bool {
	return a.limit > 0 && a.month.Equal(freshet.Month(now)) && a.written+a.flushing+a.counted >= a.limit
}

// IsSpent reports whether the messages of an owner are used up, as far as this node has to do with it.
func (m *Meter) IsSpent(of Owner) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.accounts[of]
	return a != nil && a.isSpent(time.Now())
}

// OnSpent has fn called once for each owner whose quota is used up, and again if that happens another time. fn must not
// block.
func (m *Meter) OnSpent(fn func(Owner)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent = fn
}

// Limit sets how many messages an owner's subscribers may get in a month, 0 for any number, and reports whether that many
// were sent already. A store that does not answer limits nobody, and nobody waits for it: losing a limit for a while is better
// than losing the service.
func (m *Meter) Limit(ctx context.Context, of Owner, perMonth int64) (spent bool) {
	now := time.Now()
	month := freshet.Month(now)
	m.mu.Lock()
	a := m.accounts[of]
	if perMonth <= 0 {
		delete(m.accounts, of)
		m.mu.Unlock()
		return false
	}
	known := a != nil && a.month.Equal(month)
	if known {
		a.set(perMonth)
		spent = a.isSpent(now)
	}
	current := known && (spent || now.Sub(a.read) < foldEvery)
	m.mu.Unlock()
	if current {
		return spent
	}
	m.consult(ctx, of, func(ctx context.Context) error {
		if known {
			return m.reload(ctx, of, month)
		}
		return m.load(ctx, of, month, perMonth)
	})
	return m.IsSpent(of)
}

// patience is how long whoever subscribes waits for what other nodes have written.
const patience = time.Second

// consult has the store read, once for all who ask for the same owner, and waits a moment for it. Nobody waits for a store that hangs.
func (m *Meter) consult(ctx context.Context, of Owner, read func(context.Context) error) {
	m.mu.Lock()
	done := m.consulting[of]
	if done == nil && m.ctx.Err() == nil {
		done = make(chan struct{})
		m.consulting[of] = done
		m.background.Go(func() {
			ctx, cancel := context.WithTimeout(m.ctx, consultTimeout)
			defer cancel()
			err := read(ctx)
			m.mu.Lock()
			m.slow = err != nil
			delete(m.consulting, of)
			m.mu.Unlock()
			close(done)
		})
	}
	slow := m.slow
	m.mu.Unlock()
	if slow || done == nil {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-timer.C:
		m.mu.Lock()
		m.slow = m.slow || m.consulting[of] == done
		m.mu.Unlock()
	}
}

// reload reads what other nodes have written since, unless this one is just writing: then it will.
func (m *Meter) reload(ctx context.Context, of Owner, month time.Time) error {
	if !m.flushing.TryRLock() {
		return nil
	}
	defer m.flushing.RUnlock()
	if len(m.batches) > 0 {
		return nil // they may be written or not
	}
	written, err := m.written(ctx, month, []Owner{of})
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.accounts[of]; a != nil && a.month.Equal(month) {
		a.read = time.Now() // whether it worked or not: a store that is away is not asked by every subscriber
		if err == nil {
			a.written = written[of]
		}
	}
	return err
}

func (a *account) set(limit int64) {
	if a.limit != limit {
		a.limit, a.told = limit, false
	}
}

// load begins to keep the account of a month. No flush is under way meanwhile, so nothing is counted twice.
func (m *Meter) load(ctx context.Context, of Owner, month time.Time, limit int64) error {
	m.flushing.RLock()
	defer m.flushing.RUnlock()
	written, err := m.written(ctx, month, []Owner{of})
	if err != nil {
		m.log.Warn("the messages of an account could not be counted; it is not limited for now", "id", of.ID(), "err", err)
		return err
	}
	m.folding.Lock() // so that the sums below and what is charged later do not overlap
	defer m.folding.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.accounts[of]
	if a == nil || !a.month.Equal(month) {
		a = &account{month: month, written: written[of], read: time.Now()}
		a.flushing, a.counted = m.unwritten(of, month)
		m.accounts[of] = a
	}
	a.set(limit)
	return nil
}

// written is what the store knows of owners' messages in a month.
func (m *Meter) written(ctx context.Context, month time.Time, owners []Owner) (map[Owner]int64, error) {
	all := make(map[Owner]int64, len(owners))
	for _, app := range []bool{false, true} {
		var ids []string
		byID := make(map[string]Owner)
		for _, o := range owners {
			if o.IsApp() == app {
				ids = append(ids, o.ID())
				byID[o.ID()] = o
			}
		}
		read := m.store.MonthMessages
		if app {
			read = m.store.AppMonthMessages
		}
		found, err := read(ctx, ids, month)
		if err != nil {
			return nil, err
		}
		for id, n := range found {
			all[byID[id]] = n
		}
	}
	return all, nil
}

// unwritten is what lies in memory of an owner's month: in batches that are waiting to be written, and in sums. The caller holds
// flushing and folding.
func (m *Meter) unwritten(of Owner, month time.Time) (waiting, summed int64) {
	count := func(n *int64, r *store.UsageRow) {
		if of.has(r.AppID, r.UserID) && freshet.Month(r.Hour).Equal(month) {
			*n += r.Messages
		}
	}
	for _, b := range m.batches {
		for i := range b.Rows {
			count(&waiting, &b.Rows[i])
		}
	}
	m.bins.each(func(r *store.UsageRow) { count(&summed, r) })
	return waiting, summed
}

// charge counts messages against the quotas of their account and their app, if they have one. The caller holds folding.
func (m *Meter) charge(at Place, messages int64, hour time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.accounts) == 0 {
		return
	}
	for _, o := range []Owner{User(at.UserID), App(at.AppID, at.UserID)} {
		if a := m.accounts[o]; a != nil && a.month.Equal(freshet.Month(hour)) {
			a.counted += messages
			a.lately += messages
		}
	}
}

// tellSpent tells of owners whose quota was used up since the last time.
func (m *Meter) tellSpent(now time.Time) {
	var spent []Owner
	m.mu.Lock()
	for of, a := range m.accounts {
		if a.isSpent(now) && !a.told {
			a.told = true
			spent = append(spent, of)
		}
	}
	tell := m.spent
	m.mu.Unlock()
	if tell == nil {
		return
	}
	for _, of := range spent {
		tell(of)
	}
}

// beginFlush and endFlush follow what moves from memory to the store. The caller holds flushing, and folding during beginFlush.
func (m *Meter) beginFlush(rows []store.UsageRow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.accounts) == 0 {
		return
	}
	for i := range rows {
		r := &rows[i]
		for _, o := range []Owner{User(r.UserID), App(r.AppID, r.UserID)} {
			if a := m.accounts[o]; a != nil && a.month.Equal(freshet.Month(r.Hour)) {
				a.counted -= r.Messages
				a.flushing += r.Messages
			}
		}
	}
}

func (m *Meter) endFlush(ctx context.Context, which selection) error {
	month := freshet.Month(time.Now())
	var owners []Owner
	m.mu.Lock()
	for of, a := range m.accounts {
		switch {
		case !a.month.Equal(month):
			delete(m.accounts, of) // a new month; whoever subscribes has it loaded
		case which.refresh && which.hasUser(of.userID) || a.flushing > 0:
			owners = append(owners, of)
		}
	}
	m.mu.Unlock()
	written, err := m.written(ctx, month, owners)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, of := range owners {
		if a := m.accounts[of]; a != nil && a.month.Equal(month) {
			a.written, a.flushing, a.read = written[of], 0, time.Now()
		}
	}
	return nil
}
