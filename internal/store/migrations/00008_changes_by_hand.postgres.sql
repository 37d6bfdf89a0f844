-- +goose Up
-- For PostgreSQL alone: SQLite itself tells whether another program wrote to the file.
--
-- Whoever changes what others remember raises the revision in the same transaction, and writes down what it changed. The store does. For
-- those who do not, such as somebody at a prompt or a node of an earlier version, this does so when they commit. It does not know what
-- they meant, so everything may have changed. That happens at the commit and not earlier: somebody who leaves a transaction open
-- must not keep everybody else from changing anything.
--
-- A later migration that changes rows of these tables and then alters the table needs SET CONSTRAINTS ALL IMMEDIATE in between.

-- +goose StatementBegin
CREATE FUNCTION log_unlogged_change() RETURNS trigger LANGUAGE plpgsql
-- Whoever may write to a table of these need not be allowed to write to the log, nor have it in the search path.
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    newest BIGINT;
BEGIN
    -- xmin is the transaction that raised the revision last. If it is this one, the change is in the log.
    UPDATE catalog_revision SET revision = revision + 1 WHERE xmin <> pg_current_xact_id()::xid RETURNING revision INTO newest;
    IF FOUND THEN
        INSERT INTO catalog_changes (revision, mark, kind, subject)
            VALUES (newest, CAST(random() * 9000000000000000 AS BIGINT), 'everything', '');
        DELETE FROM catalog_changes WHERE revision <= newest - 10000;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- An UPDATE that changes nothing is a lock.
CREATE CONSTRAINT TRIGGER users_changed AFTER UPDATE ON users DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION log_unlogged_change();
CREATE CONSTRAINT TRIGGER keys_changed AFTER UPDATE ON keys DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION log_unlogged_change();
CREATE CONSTRAINT TRIGGER topics_changed AFTER UPDATE ON topics DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION log_unlogged_change();
-- All but topic_count, which rises with every new topic and which nobody remembers.
CREATE CONSTRAINT TRIGGER apps_changed AFTER UPDATE ON apps DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (
        (OLD.id, OLD.user_id, OLD.name, OLD.auto_provisioning_allowed, OLD.signature_required, OLD.defaults,
            OLD.created_at, OLD.updated_at, OLD.quota_connections, OLD.quota_messages_per_month, OLD.quota_requests_per_minute,
            OLD.quota_topics, OLD.quota_document_bytes)
        IS DISTINCT FROM
        (NEW.id, NEW.user_id, NEW.name, NEW.auto_provisioning_allowed, NEW.signature_required, NEW.defaults,
            NEW.created_at, NEW.updated_at, NEW.quota_connections, NEW.quota_messages_per_month, NEW.quota_requests_per_minute,
            NEW.quota_topics, NEW.quota_document_bytes))
    EXECUTE FUNCTION log_unlogged_change();

-- What goes with its user or its app, by a trigger of the foreign key, is left out: the user or the app says enough, and there may be
-- 100,000 topics.
CREATE CONSTRAINT TRIGGER users_deleted AFTER DELETE ON users DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION log_unlogged_change();
CREATE CONSTRAINT TRIGGER apps_deleted AFTER DELETE ON apps DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION log_unlogged_change();
CREATE CONSTRAINT TRIGGER keys_deleted AFTER DELETE ON keys DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION log_unlogged_change();
CREATE CONSTRAINT TRIGGER topics_deleted AFTER DELETE ON topics DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION log_unlogged_change();

-- These cannot wait for the commit. Who truncates keeps everybody out until then anyway.
CREATE TRIGGER users_truncated AFTER TRUNCATE ON users EXECUTE FUNCTION log_unlogged_change();
CREATE TRIGGER apps_truncated AFTER TRUNCATE ON apps EXECUTE FUNCTION log_unlogged_change();
CREATE TRIGGER keys_truncated AFTER TRUNCATE ON keys EXECUTE FUNCTION log_unlogged_change();
CREATE TRIGGER topics_truncated AFTER TRUNCATE ON topics EXECUTE FUNCTION log_unlogged_change();
