package memory

import "sync/atomic"

// An Account counts the bytes that are held for long, against a bound. The zero value has none.
type Account struct {
	most int64
	held atomic.Int64
}

// NewAccount returns an account of so many bytes at most; 0 is no bound.
func NewAccount(most int64) *Account { return &Account{most: most} }

// Add counts bytes that are held from now on, or, if negative, no longer. Who asked Fits before may still be one of several who
// did, so the account can be overdrawn a little.
func (a *Account) Add(bytes int64) {
	if bytes != 0 {
		a.held.Add(bytes)
	}
}

// Fits reports whether so many more bytes may be held.
func (a *Account) Fits(more int64) bool {
	return more <= 0 || a.most <= 0 || a.held.Load()+more <= a.most
}

// Held returns what is held.
func (a *Account) Held() int64 { return a.held.Load() }

// Most returns the bound; 0 is none.
func (a *Account) Most() int64 { return a.most }
