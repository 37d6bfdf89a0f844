-- What is registered at the gateway. Each row carries the revision of its last change, so that a node reads only what is
-- new to it.

-- +goose Up
CREATE TABLE gateway_revision (
    -- There is one row.
    id BIGINT NOT NULL PRIMARY KEY,
    revision BIGINT NOT NULL,
    -- The revision of the last deletion: who has not seen it must read everything again.
    deleted BIGINT NOT NULL
);
INSERT INTO gateway_revision (id, revision, deleted) VALUES (1, 1, 0);

CREATE TABLE gateway_apis (
    id TEXT NOT NULL PRIMARY KEY,
    revision BIGINT NOT NULL,
    name TEXT NOT NULL,
    request_host TEXT NOT NULL,
    request_path TEXT NOT NULL,
    strip_request_path BOOLEAN NOT NULL,
    preserve_host BOOLEAN NOT NULL,
    upstream_url TEXT NOT NULL,
    built_in BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX gateway_apis_name ON gateway_apis (name);
CREATE UNIQUE INDEX gateway_apis_host ON gateway_apis (request_host) WHERE request_host <> '';
CREATE UNIQUE INDEX gateway_apis_path ON gateway_apis (request_path) WHERE request_path <> '';
CREATE INDEX gateway_apis_revision ON gateway_apis (revision);
INSERT INTO gateway_apis (id, revision, name, request_host, request_path, strip_request_path, preserve_host, upstream_url,
    built_in, created_at) VALUES
    ('00000000-0000-7000-8000-000000000001', 1, 'api', '', '/api', FALSE, FALSE, '', TRUE, 0),
    ('00000000-0000-7000-8000-000000000002', 1, 'publish', '', '/publish', FALSE, FALSE, '', TRUE, 0);

CREATE TABLE gateway_consumers (
    id TEXT NOT NULL PRIMARY KEY,
    revision BIGINT NOT NULL,
    username TEXT NOT NULL,
    custom_id TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX gateway_consumers_username ON gateway_consumers (username) WHERE username <> '';
CREATE UNIQUE INDEX gateway_consumers_custom_id ON gateway_consumers (custom_id) WHERE custom_id <> '';
CREATE INDEX gateway_consumers_revision ON gateway_consumers (revision);

CREATE TABLE gateway_plugins (
    id TEXT NOT NULL PRIMARY KEY,
    revision BIGINT NOT NULL,
    api_id TEXT NOT NULL REFERENCES gateway_apis (id) ON DELETE CASCADE,
    -- Empty for all consumers, hence no foreign key; DeleteConsumer takes them along.
    consumer_id TEXT NOT NULL,
    name TEXT NOT NULL,
    config TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX gateway_plugins_once ON gateway_plugins (api_id, name, consumer_id);
CREATE INDEX gateway_plugins_consumer ON gateway_plugins (consumer_id);
CREATE INDEX gateway_plugins_revision ON gateway_plugins (revision);

CREATE TABLE gateway_credentials (
    id TEXT NOT NULL PRIMARY KEY,
    revision BIGINT NOT NULL,
    consumer_id TEXT NOT NULL REFERENCES gateway_consumers (id) ON DELETE CASCADE,
    value TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX gateway_credentials_value ON gateway_credentials (value);
CREATE INDEX gateway_credentials_consumer ON gateway_credentials (consumer_id);
CREATE INDEX gateway_credentials_revision ON gateway_credentials (revision);
