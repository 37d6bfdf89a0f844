-- +goose Up
-- What was changed or deleted of users, apps and topics, so that a process that remembers some of them finds out with one question
-- what it must read again. Whoever changes one of them writes it down in the same transaction. What is new is not written down:
-- nobody remembers what did not exist.
CREATE TABLE catalog_revision (
    -- There is one row. Whoever holds its lock commits next, so a revision that can be read has none before it that cannot.
    id BIGINT NOT NULL PRIMARY KEY,
    revision BIGINT NOT NULL
);
INSERT INTO catalog_revision (id, revision) VALUES (1, 0);

-- The newest of them; older ones are deleted.
CREATE TABLE catalog_changes (
    revision BIGINT NOT NULL PRIMARY KEY,
    -- Random: tells a revision from one of the same number in a database that was restored from a backup.
    mark BIGINT NOT NULL,
    -- user, app or topic
    kind TEXT NOT NULL,
    subject TEXT NOT NULL
);
