-- +goose Up
-- How many topics an account or an app may have, and how many bytes their newest documents; -1 leaves it to the server's settings.
ALTER TABLE users ADD COLUMN quota_topics BIGINT NOT NULL DEFAULT -1;
ALTER TABLE users ADD COLUMN quota_document_bytes BIGINT NOT NULL DEFAULT -1;
ALTER TABLE apps ADD COLUMN quota_topics BIGINT NOT NULL DEFAULT -1;
ALTER TABLE apps ADD COLUMN quota_document_bytes BIGINT NOT NULL DEFAULT -1;
