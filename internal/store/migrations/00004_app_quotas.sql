-- +goose Up
-- Quotas of single apps, beside those of their accounts; -1 leaves them to the server's settings.
ALTER TABLE apps ADD COLUMN quota_connections BIGINT NOT NULL DEFAULT -1;
ALTER TABLE apps ADD COLUMN quota_messages_per_month BIGINT NOT NULL DEFAULT -1;
ALTER TABLE apps ADD COLUMN quota_requests_per_minute BIGINT NOT NULL DEFAULT -1;

-- Messages of each app in each month, as usage_months has them of accounts. It begins empty: no app had a quota before.
CREATE TABLE usage_app_months (
    app_id TEXT NOT NULL,
    month BIGINT NOT NULL,
    messages BIGINT NOT NULL,
    PRIMARY KEY (app_id, month)
);

CREATE INDEX usage_by_user ON usage (user_id, hour);
ALTER TABLE usage ADD COLUMN polls_failed BIGINT NOT NULL DEFAULT 0;
-- Deliveries by how long they took, one column for each bucket of a histogram: columns add up, percentiles do not. A zero takes
-- no room in SQLite.
ALTER TABLE usage ADD COLUMN lag_0 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_1 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_2 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_3 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_4 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_5 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_6 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_7 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_8 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_9 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_10 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_11 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_12 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_13 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_14 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_15 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_16 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN lag_17 BIGINT NOT NULL DEFAULT 0;
