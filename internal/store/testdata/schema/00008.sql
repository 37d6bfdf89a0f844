INSERT INTO users VALUES ('019b76da-a800-7000-8000-000000000001', 'Ada@Example.com', 'ada@example.com',
    'ada@example.com
ada lovelace', 'Ada', 'Lovelace', 'en_GB', 'admin', 'active', 10, 0, -1,
    '$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA', 1767225600123, 1767312000456, 50, 1000);
INSERT INTO sessions VALUES ('session', '019b76da-a800-7000-8000-000000000001', 1767225600123, 1767312000456);
INSERT INTO known_networks VALUES ('019b76da-a800-7000-8000-000000000001', 'network', 1767225600123);
INSERT INTO apps VALUES ('019b76da-a800-7000-8000-000000000002', '019b76da-a800-7000-8000-000000000001', 'prices',
    TRUE, FALSE, '{"poll_every_ms":1500,"force_publishing":false}', 2, 1767225600123, 1767312000456, 7, -1, 0, -1, 0);
INSERT INTO keys VALUES
    ('019b76da-a800-7000-8000-000000000002', 'subscriber', 'subscriber-key-before', 1767225600123, 1767312000456),
    ('019b76da-a800-7000-8000-000000000002', 'subscriber', 'subscriber-key-current', 1767312000456, 0),
    ('019b76da-a800-7000-8000-000000000002', 'publisher', 'publisher-key-current', 1767225600123, 0),
    ('019b76da-a800-7000-8000-000000000002', 'signature', 'signature-key-current', 1767225600123, 0);
INSERT INTO topics VALUES
    ('019b76da-a800-7000-8000-000000000003', '019b76da-a800-7000-8000-000000000002', 'eurusd', 'http-poller',
     '{"url":"https://example.com/?a=1\u0026b=2","poll_every_ms":3000}', 'snapshot', '', 1767225600123, 1767312000456),
    ('019b76da-a800-7000-8000-000000000004', '019b76da-a800-7000-8000-000000000002', 'it''s', 'http-post',
     '{"force_publishing":true}', 'item', '.id', 1767225600123, 1767312000456);
INSERT INTO secrets VALUES ('token', 'c2VjcmV0');
INSERT INTO audit VALUES ('019b76da-a800-7000-8000-000000000005', 1767225600123,
    '019b76da-a800-7000-8000-000000000001', 'app.create', '019b76da-a800-7000-8000-000000000002', '{}');
INSERT INTO usage VALUES ('019b76da-a800-7000-8000-000000000003', 1767225600000, '019b76da-a800-7000-8000-000000000002',
    '019b76da-a800-7000-8000-000000000001', 1, 2, 3, 4, 5, 6, 7000,
    1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17);
INSERT INTO usage_months VALUES ('019b76da-a800-7000-8000-000000000001', 1767225600000, 1);
INSERT INTO usage_app_months VALUES ('019b76da-a800-7000-8000-000000000002', 1767225600000, 1);
INSERT INTO usage_writers VALUES ('writer', 9, 1767225600123);
INSERT INTO gateway_apis VALUES ('019b76da-a800-7000-8000-000000000006', 2, 'quote', 'quote.example.com', '/quote',
    TRUE, FALSE, 'https://example.com/v2', FALSE, 1767225600123);
INSERT INTO gateway_consumers VALUES ('019b76da-a800-7000-8000-000000000007', 3, 'bob', 'b-1', 1767225600123);
INSERT INTO gateway_plugins VALUES ('019b76da-a800-7000-8000-000000000008', 4, '019b76da-a800-7000-8000-000000000006',
    '', 'rate-limiting', '{"minute":5}', TRUE, 1767225600123);
INSERT INTO gateway_credentials VALUES ('019b76da-a800-7000-8000-000000000009', 5, '019b76da-a800-7000-8000-000000000007',
    'bobs-key', 1767225600123);
UPDATE gateway_revision SET revision = 5;
INSERT INTO catalog_changes VALUES (1, 4711, 'topic', '019b76da-a800-7000-8000-000000000003'),
    (2, 4712, 'app', '019b76da-a800-7000-8000-000000000002');
UPDATE catalog_revision SET revision = 2;
