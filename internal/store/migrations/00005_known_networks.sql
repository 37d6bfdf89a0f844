-- +goose Up
-- Networks that somebody signed in to an account from. They are hashed with a key that only the service has: nobody needs to
-- read where people are.
CREATE TABLE known_networks (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    network TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, network)
);
