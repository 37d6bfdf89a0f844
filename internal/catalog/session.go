package catalog

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// Actor is somebody who proved who they are.
type Actor struct {
	User    freshet.User
	session string
}

// Admin reports whether the actor may use the admin API and see other people's things.
func (a *Actor) Admin() bool { return a.User.Role == freshet.RoleAdmin }

// sees reports whether things of the user are the actor's to see. To everybody else they do not exist.
func (a *Actor) sees(userID string) bool { return a.User.ID == userID || a.Admin() }

// Token is what a sign-in gives.
type Token struct {
	Text      freshet.Secret
	UserID    string
	ExpiresAt time.Time
}

// Tokens name us as both maker and reader, so that a token of another system with the same secret is refused.
const (
	tokenIssuer   = "freshet"
	tokenAudience = "freshet-management"
	maxToken      = 4 << 10 // bytes; ours have a few hundred

	// maxTokenSkew is how far ahead the clock may be by which a token was issued: who signs in at one node uses the token at another
	// in the next moment. When it ends is not a matter of it.
	maxTokenSkew = time.Minute
)

// errToken never says which part was wrong: that would help guessing.
var errToken = freshet.Errorf(freshet.Unauthenticated, "The token is missing, wrong or expired; get a new one with PUT /session")

// SignIn checks a password and opens a session. Unknown accounts take as long to refuse as known ones. The network is where
// the caller comes from: its address, or the /64 of it.
func (c *Catalog) SignIn(ctx context.Context, email, password, network string) (*Token, error) {
	userID, err := c.prove(ctx, freshet.EmailKey(email), password, network)
	if err != nil {
		return nil, err
	}
	return c.openSession(ctx, userID, network)
}

// prove checks the password of an account, within what the network may still try, and returns whose account it is.
func (c *Catalog) prove(ctx context.Context, emailKey, password, network string) (userID string, err error) {
	known := func() bool { return c.knowsNetwork(ctx, emailKey, network) }
	tried, err := c.attempts.enter(ctx, c.now, emailKey, network, known)
	if err != nil {
		if errors.Is(err, errGuesser) {
			c.logFailedSignIn(ctx, emailKey, network, tooManyAttempts)
		}
		return "", err
	}
	userID, err = c.checkPassword(ctx, emailKey, password, network)
	if why, isRefused := failureOf(err); isRefused {
		c.attempts.failed(tried)
		c.logFailedSignIn(ctx, emailKey, network, why)
		return "", err
	}
	c.attempts.takeBack(tried)
	return userID, err
}

// checkPassword returns whose account it is, or a signInFailure.
func (c *Catalog) checkPassword(ctx context.Context, emailKey, password, network string) (userID string, err error) {
	if len(password) > freshet.MaxPassword {
		return "", wrongPassword.err() // nobody has it, so it is not worth hashing
	}
	found, err := c.store.AccountByEmail(ctx, emailKey)
	switch {
	case freshet.KindOf(err) == freshet.NotFound:
		found = &store.Account{}
	case err != nil:
		return "", err
	}
	match, err := c.passwords.matches(ctx, network, password, found.PasswordHash)
	if err != nil {
		return "", err
	}
	switch {
	case found.ID == "":
		return "", unknownAccount.err()
	case !match:
		return "", wrongPassword.err()
	case found.Status != freshet.StatusActive:
		return "", accountDisabled.err()
	}
	return found.ID, nil
}

func (c *Catalog) openSession(ctx context.Context, userID, network string) (*Token, error) {
	now := c.now()
	session := store.Session{ID: freshet.NewID(), UserID: userID, CreatedAt: now, ExpiresAt: now.Add(c.opts.TokenLifetime)}
	claims := jwt.RegisteredClaims{
		Issuer:    tokenIssuer,
		Audience:  jwt.ClaimStrings{tokenAudience},
		Subject:   userID,
		ID:        session.ID,
		IssuedAt:  jwt.NewNumericDate(now),
		ExpiresAt: jwt.NewNumericDate(session.ExpiresAt),
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(c.secret)
	if err != nil {
		return nil, err
	}
	err = c.store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.DropExpiredSessions(userID, now); err != nil {
			return err
		}
		if err := c.rememberNetwork(tx, userID, network); err != nil {
			return err
		}
		return tx.CreateSession(session)
	})
	if err != nil {
		return nil, err
	}
	return &Token{Text: freshet.Secret(text), UserID: userID, ExpiresAt: session.ExpiresAt}, nil
}

// Authenticate answers whose token this is. The signature alone is not enough: the session behind it must still
// be open, so that signing out, a new password and a disabled account end it at once.
func (c *Catalog) Authenticate(ctx context.Context, token string) (*Actor, error) {
	sessionID, userID, err := c.parseToken(token)
	if err != nil {
		return nil, err
	}
	user, err := c.store.SessionUser(ctx, sessionID, c.now())
	if freshet.KindOf(err) == freshet.NotFound {
		return nil, errToken
	}
	if err != nil {
		return nil, err
	}
	if user.ID != userID || user.Status != freshet.StatusActive {
		return nil, errToken
	}
	return &Actor{User: *c.withQuotas(user), session: sessionID}, nil
}

// parseToken checks everything about a token that can be checked without the store.
func (c *Catalog) parseToken(token string) (sessionID, userID string, err error) {
	if token == "" || len(token) > maxToken {
		return "", "", errToken
	}
	claims := jwt.MapClaims{} // stricter than the library's struct, which takes times in quotes
	_, err = jwt.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return c.secret, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithIssuer(tokenIssuer),
		jwt.WithAudience(tokenAudience),
		jwt.WithExpirationRequired(),
		jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(c.now),
	)
	sessionID, _ = claims["jti"].(string)
	userID, _ = claims["sub"].(string)
	issued, missing := claims.GetIssuedAt()
	if err != nil || missing != nil || !freshet.IsID(sessionID) || issued != nil && issued.After(c.now().Add(maxTokenSkew)) {
		return "", "", errToken
	}
	return sessionID, userID, nil
}

// SignOut ends the session the actor came with.
func (c *Catalog) SignOut(ctx context.Context, actor *Actor) error {
	return c.store.Update(ctx, func(tx *store.Tx) error { return tx.EndSession(actor.session) })
}

// SignOutEverywhere ends every session of the actor, this one included.
func (c *Catalog) SignOutEverywhere(ctx context.Context, actor *Actor) error {
	return c.store.Update(ctx, func(tx *store.Tx) error { return tx.EndSessions(actor.User.ID, "") })
}

func rawBase64(b []byte) string { return base64.RawStdEncoding.EncodeToString(b) }
