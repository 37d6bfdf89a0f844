-- Read by SQLite and by PostgreSQL: TEXT, BIGINT and BOOLEAN only; times are unix milliseconds, JSON is TEXT.
-- A migration that has been released is never edited. Index names end up in errors.go.

-- +goose Up
CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    -- Lower-cased by us, since SQLite folds ASCII only: what the admin's search looks through.
    search TEXT NOT NULL,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    language TEXT NOT NULL,
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    quota_connections BIGINT NOT NULL,
    quota_messages_per_month BIGINT NOT NULL,
    quota_requests_per_minute BIGINT NOT NULL,
    password_hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX users_email_key ON users (email_key);

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id, expires_at);

CREATE TABLE apps (
    id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    auto_provisioning_allowed BOOLEAN NOT NULL,
    signature_required BOOLEAN NOT NULL,
    defaults TEXT NOT NULL,
    -- Kept by whoever inserts or deletes topics, in the same transaction: a listing knows its total, and from which
    -- end its page is nearer, without counting.
    topic_count BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX apps_user_name ON apps (user_id, name);
CREATE INDEX apps_by_user ON apps (user_id, id);

CREATE TABLE keys (
    app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- 0 while current.
    revoked_at BIGINT NOT NULL,
    PRIMARY KEY (kind, value)
);
CREATE UNIQUE INDEX keys_current ON keys (app_id, kind) WHERE revoked_at = 0;
CREATE INDEX keys_by_app ON keys (app_id);

CREATE TABLE topics (
    id TEXT NOT NULL PRIMARY KEY,
    app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    publisher_type TEXT NOT NULL,
    config TEXT NOT NULL,
    payload_type TEXT NOT NULL,
    item_id_path TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX topics_by_app ON topics (app_id, id);

CREATE TABLE secrets (
    name TEXT NOT NULL PRIMARY KEY,
    -- base64
    value TEXT NOT NULL
);

CREATE TABLE audit (
    id TEXT NOT NULL PRIMARY KEY,
    happened_at BIGINT NOT NULL,
    -- No foreign key: the trail outlives those who made it.
    actor_id TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit (happened_at, id);
