package catalog

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"

	"github.com/alexedwards/argon2id"
)

// Hashing is what one password hash costs. The zero value is OWASP's recommendation for argon2id, 19 MiB and two
// passes; anything cheaper is for tests.
type Hashing struct {
	MemoryKiB uint32
	Passes    uint32
}

func (h Hashing) params() *argon2id.Params {
	if h == (Hashing{}) {
		h = Hashing{MemoryKiB: 19 * 1024, Passes: 2}
	}
	return &argon2id.Params{Memory: h.MemoryKiB, Iterations: h.Passes, Parallelism: 1, SaltLength: 16, KeyLength: 32}
}

// passwords hashes and compares, a few at a time: each hash takes 19 MiB and tens of milliseconds of a core, so a
// flood of sign-ins must queue here instead of eating the machine. The network is that of the one who asks.
type passwords struct {
	params    *argon2id.Params
	semaphore *fairSemaphore
	decoy     string // compared against for accounts that do not exist, so that time does not tell
}

func newPasswords(cost Hashing) passwords {
	params := cost.params()
	return passwords{params: params, semaphore: newFairSemaphore(hashPlaces(runtime.GOMAXPROCS(0))), decoy: decoyHash(params)}
}

// decoyHash has the form of a real hash, and costs as much to compare with, but takes no time to make: to nobody's
// password, so its key may as well be random.
func decoyHash(hashing *argon2id.Params) string {
	salt, key := make([]byte, hashing.SaltLength), make([]byte, hashing.KeyLength)
	rand.Read(salt)
	rand.Read(key)
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", hashing.Memory, hashing.Iterations, hashing.Parallelism,
		rawBase64(salt), rawBase64(key))
}

func (p passwords) hash(ctx context.Context, network, password string) (string, error) {
	leave, err := p.semaphore.enter(ctx, network)
	if err != nil {
		return "", err
	}
	defer leave()
	hash, err := argon2id.CreateHash(password, p.params)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return hash, nil
}

// matches compares in constant time. An empty hash, of an account that does not exist, matches nothing but takes
// as long as one that does.
func (p passwords) matches(ctx context.Context, network, password, hash string) (bool, error) {
	leave, err := p.semaphore.enter(ctx, network)
	if err != nil {
		return false, err
	}
	defer leave()
	known := hash != ""
	if !known {
		hash = p.decoy
	}
	match, err := argon2id.ComparePasswordAndHash(password, hash)
	if err != nil {
		return false, fmt.Errorf("compare password: %w", err)
	}
	return match && known, nil
}
