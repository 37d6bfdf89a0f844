package usage

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
)

// account is one whose messages are limited. What all nodes delivered is known from the store, what this one delivered since
// from its own count. As an account comes near its limit every node writes its count down, and reads what the others
// wrote, every second; so over a cluster a limit is noticed about as soon as on a single node.
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
)

func (a *account) isNear(now time.Time) bool {
	if a.limit <= 0 || !a.month.Equal(freshet.Month(now)) || a.isSpent(now) {
		return false
	}
	left := a.limit - (a.written + a.flushing + a.counted)
	return left <= a.limit/nearPart || left <= nearSeconds*a.lately
}

// near returns the accounts that are near their limits, and begins to count what they use lately anew.
func (m *Meter) near(now time.Time) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all map[string]bool
	for id, a := range m.accounts {
		if a.isNear(now) {
			if all == nil {
				all = make(map[string]bool)
			}
			all[id] = true
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
	if err := m.flush(ctx, func(userID string) bool { return near[userID] }); err != nil {
		m.log.Debug("usage near a quota could not be written down; it is kept for the next time", "err", err)
	}
}

func (a *account) isSpent(now time.Time) bool {
	return a.limit > 0 && a.month.Equal(freshet.Month(now)) && a.written+a.flushing+a.counted >= a.limit
}

// IsSpent reports whether the messages of an account are used up, as far as this node has to do with it.
func (m *Meter) IsSpent(userID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.accounts[userID]
	return a != nil && a.isSpent(time.Now())
}

// OnSpent has fn called once for each account whose quota is used up, and again if that happens another time. fn must not
// block.
func (m *Meter) OnSpent(fn func(userID string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent = fn
}

// Limit sets how many messages an account's subscribers may get in a month, 0 for any number, and reports whether that many
// were sent already. A store that does not answer limits nobody: losing a limit for a while is better than losing the service.
func (m *Meter) Limit(ctx context.Context, userID string, perMonth int64) (spent bool) {
	now := time.Now()
	month := freshet.Month(now)
	m.mu.Lock()
	a := m.accounts[userID]
	if perMonth <= 0 {
		delete(m.accounts, userID)
		m.mu.Unlock()
		return false
	}
	if a != nil && a.month.Equal(month) {
		a.set(perMonth)
		spent = a.isSpent(now)
		old := !spent && now.Sub(a.read) >= foldEvery
		m.mu.Unlock()
		return spent || old && m.reload(ctx, userID, month)
	}
	m.mu.Unlock()
	return m.load(ctx, userID, month, perMonth)
}

// reload reads what other nodes have written since, unless this one is just writing: then it will.
func (m *Meter) reload(ctx context.Context, userID string, month time.Time) (spent bool) {
	if !m.flushing.TryRLock() {
		return false
	}
	defer m.flushing.RUnlock()
	if len(m.batches) > 0 {
		return false // they may be written or not
	}
	ctx, cancel := context.WithTimeout(ctx, nearTimeout)
	defer cancel()
	written, err := m.store.MonthMessages(ctx, userID, month)
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.accounts[userID]
	if a == nil || !a.month.Equal(month) {
		return false
	}
	a.read = time.Now() // whether it worked or not: a store that is away is not asked by every subscriber
	if err == nil {
		a.written = written
	}
	return a.isSpent(time.Now())
}

func (a *account) set(limit int64) {
	if a.limit != limit {
		a.limit, a.told = limit, false
	}
}

// load begins to keep the account of a month. No flush is under way meanwhile, so nothing is counted twice.
func (m *Meter) load(ctx context.Context, userID string, month time.Time, limit int64) (spent bool) {
	m.flushing.RLock()
	defer m.flushing.RUnlock()
	written, err := m.store.MonthMessages(ctx, userID, month)
	if err != nil {
		m.log.Warn("the messages of an account could not be counted; it is not limited for now", "user", userID, "err", err)
		return false
	}
	m.folding.Lock() // so that the sums below and what is charged later do not overlap
	defer m.folding.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.accounts[userID]
	if a == nil || !a.month.Equal(month) {
		a = &account{month: month, written: written, read: time.Now(), counted: m.unwritten(userID, month)}
		m.accounts[userID] = a
	}
	a.set(limit)
	return a.isSpent(time.Now())
}

// unwritten is what lies in memory of an account's month. The caller holds flushing and folding.
func (m *Meter) unwritten(userID string, month time.Time) (messages int64) {
	for _, b := range m.batches {
		for i := range b.Rows {
			if r := &b.Rows[i]; r.UserID == userID && freshet.Month(r.Hour).Equal(month) {
				messages += r.Messages
			}
		}
	}
	for i := range m.bins.bins {
		b := &m.bins.bins[i]
		b.mu.Lock()
		for _, r := range b.rows {
			if r.UserID == userID && freshet.Month(r.Hour).Equal(month) {
				messages += r.Messages
			}
		}
		b.mu.Unlock()
	}
	return messages
}

// charge counts messages against the quota of their account, if it has one. The caller holds folding.
func (m *Meter) charge(userID string, messages int64, hour time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.accounts[userID]; a != nil && a.month.Equal(freshet.Month(hour)) {
		a.counted += messages
		a.lately += messages
	}
}

// tellSpent tells of accounts whose quota was used up since the last time.
func (m *Meter) tellSpent(now time.Time) {
	var spent []string
	m.mu.Lock()
	for id, a := range m.accounts {
		if a.isSpent(now) && !a.told {
			a.told = true
			spent = append(spent, id)
		}
	}
	tell := m.spent
	m.mu.Unlock()
	if tell == nil {
		return
	}
	for _, id := range spent {
		tell(id)
	}
}

// beginFlush and endFlush follow what moves from memory to the store. The caller holds flushing.
func (m *Meter) beginFlush(match func(userID string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, a := range m.accounts {
		if !match(id) {
			continue
		}
		a.flushing += a.counted
		a.counted = 0
	}
}

func (m *Meter) endFlush(ctx context.Context, match func(userID string) bool) error {
	m.mu.Lock()
	months := make(map[string]time.Time, len(m.accounts))
	current := freshet.Month(time.Now())
	for id, a := range m.accounts {
		switch {
		case !a.month.Equal(current):
			delete(m.accounts, id) // a new month; whoever subscribes has it loaded
		case match(id) || a.flushing > 0:
			months[id] = a.month
		}
	}
	m.mu.Unlock()
	for id, month := range months {
		written, err := m.store.MonthMessages(ctx, id, month)
		if err != nil {
			return err
		}
		m.mu.Lock()
		if a := m.accounts[id]; a != nil && a.month.Equal(month) {
			a.written, a.flushing, a.read = written, 0, time.Now()
		}
		m.mu.Unlock()
	}
	return nil
}
