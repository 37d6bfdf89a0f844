-- +goose Up
-- What each topic used in each hour. No foreign keys: what was used was used, whatever is deleted later, and it is written
-- down some time after it happened.
CREATE TABLE usage (
    topic_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    app_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    messages BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    full_bytes BIGINT NOT NULL,
    publications BIGINT NOT NULL,
    polls BIGINT NOT NULL,
    polls_not_modified BIGINT NOT NULL,
    connected_ms BIGINT NOT NULL,
    PRIMARY KEY (topic_id, hour)
);
CREATE INDEX usage_by_app ON usage (app_id, hour);
CREATE INDEX usage_by_hour ON usage (hour);

-- Messages of each account in each month, which is what quotas ask for: one row, not a sum over all its topics.
CREATE TABLE usage_months (
    user_id TEXT NOT NULL,
    month BIGINT NOT NULL,
    messages BIGINT NOT NULL,
    PRIMARY KEY (user_id, month)
);

-- The last batch that each process added, so that one whose fate was unknown is not added twice.
CREATE TABLE usage_writers (
    id TEXT NOT NULL PRIMARY KEY,
    batch BIGINT NOT NULL,
    written_at BIGINT NOT NULL
);
