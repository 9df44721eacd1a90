-- The statements of schema 1, as perdure of that schema sends them. Kept as they were.
-- add_worker
INSERT INTO worker (id, name, host, pid, registered) VALUES (?, ?, ?, ?, ?);
-- append
INSERT INTO journal (run, seq, at, writer, commit_id, read, body)
SELECT * FROM (VALUES (?, ?, ?, ?, ?, ?, ?)) AS new
WHERE EXISTS (SELECT 1 FROM run WHERE key = new.column1 AND status = 'running');
-- append_first
INSERT INTO journal (run, seq, at, writer, commit_id, read, body)
VALUES (?, ?, ?, ?, ?, ?, ?);
-- append_if_free
INSERT INTO journal (run, seq, at, writer, commit_id, read, body)
SELECT * FROM (VALUES (?, ?, ?, ?, ?, ?, ?)) AS new
WHERE EXISTS (SELECT 1 FROM run WHERE key = new.column1 AND status = 'running')
ON CONFLICT DO NOTHING;
-- author
SELECT writer, commit_id FROM journal WHERE run = ? AND seq = ?;
-- claim
UPDATE run SET owner = ?, epoch = epoch + 1
WHERE key IN (VALUES (?))
RETURNING key, definition, hash, epoch, ready_at;
-- created
SELECT created FROM run WHERE key = ?;
-- define
INSERT INTO definition (hash, name, version, kind, source, created)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (hash) DO NOTHING;
-- definition
SELECT hash, name, version, kind, source, created FROM definition WHERE hash = ?;
-- describe
SELECT
        key, definition, id, version, hash, status, created, owner, epoch, ready_at, base_seq,
    CASE
        WHEN crashes = 0 THEN 0
        WHEN claimed_seq = (SELECT max(seq) FROM journal WHERE journal.run = run.key) THEN crashes
        ELSE 0
    END AS crashes,
    finished, deadline, stalled, metadata, output, output_seq, output_n, failure
FROM run
WHERE definition = ? AND id = ?;
-- due
SELECT ready_at, key FROM run
WHERE definition = ? AND ready_at <= ?
    AND owner IS NULL AND status = 'running' AND stalled IS NULL
ORDER BY ready_at, key
LIMIT ?;
-- find_by_definition
SELECT
        key, definition, id, version, hash, status, created, owner, epoch, ready_at, base_seq,
    CASE
        WHEN crashes = 0 THEN 0
        WHEN claimed_seq = (SELECT max(seq) FROM journal WHERE journal.run = run.key) THEN crashes
        ELSE 0
    END AS crashes,
    finished, deadline, stalled, metadata, output, output_seq, output_n, failure
FROM run
WHERE definition = :definition AND status IN (SELECT value FROM json_each(:statuses))
    AND created > :after AND created <= :until AND (created, key) < (:until, :before)
ORDER BY created DESC, key DESC
LIMIT :limit;
-- find_by_status
SELECT
        key, definition, id, version, hash, status, created, owner, epoch, ready_at, base_seq,
    CASE
        WHEN crashes = 0 THEN 0
        WHEN claimed_seq = (SELECT max(seq) FROM journal WHERE journal.run = run.key) THEN crashes
        ELSE 0
    END AS crashes,
    finished, deadline, stalled, metadata, output, output_seq, output_n, failure
FROM run
WHERE status = :status
    AND created > :after AND created <= :until AND (created, key) < (:until, :before)
ORDER BY created DESC, key DESC
LIMIT :limit;
-- give_back
UPDATE run SET owner = NULL, ready_at = :ready_at, stalled = :stalled
WHERE key = :key AND owner = :owner AND epoch = :epoch AND status = 'running';
-- has_run
SELECT 1 FROM run WHERE key = ?;
-- held
SELECT
    key,
    (SELECT max(seq) FROM journal WHERE journal.run = run.key) AS seq
FROM run
WHERE owner = ?
LIMIT ?;
-- insert_runs
INSERT INTO run (
    key, definition, id, version, hash, status, created, owner, ready_at, deadline, metadata,
    stalled, finished, output, output_seq, output_n, failure, purge_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
-- keep_payloads
INSERT INTO payload (run, seq, n, value)
VALUES (?, ?, ?, ?);
-- latest_definition
SELECT hash, name, version, kind, source, created FROM definition
WHERE name = ? ORDER BY created DESC, rowid DESC LIMIT 1;
-- let_go
UPDATE run SET
    owner = NULL,
    status = said.status,
    ready_at = said.ready_at,
    stalled = said.stalled,
    finished = said.finished,
    output = said.output,
    output_seq = said.output_seq,
    output_n = said.output_n,
    failure = said.failure,
    purge_at = said.purge_at
FROM (
    WITH given (
        key, owner, epoch, status, ready_at, stalled, finished, output, output_seq, output_n,
        failure, purge_at
    ) AS MATERIALIZED (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))
    SELECT * FROM given
) AS said
WHERE run.key = said.key AND run.owner = said.owner AND run.epoch = said.epoch
    AND run.status = 'running';
-- load
SELECT
        key, definition, id, version, hash, status, created, owner, epoch, ready_at, base_seq,
    CASE
        WHEN crashes = 0 THEN 0
        WHEN claimed_seq = (SELECT max(seq) FROM journal WHERE journal.run = run.key) THEN crashes
        ELSE 0
    END AS crashes,
    finished, deadline, stalled, metadata, output, output_seq, output_n, failure,
    (
        SELECT json_group_array(json_array(seq, at, writer, read, CAST(body AS TEXT)))
        FROM journal
        WHERE journal.run = run.key AND journal.seq >= run.base_seq
    ) AS journal
FROM run
WHERE key = ?;
-- meta
SELECT value FROM meta WHERE key = ?;
-- payload
SELECT value FROM payload WHERE run = ? AND seq = ? AND n = ?;
-- release_all
UPDATE run SET owner = NULL, ready_at = ? WHERE owner = ?;
-- remove_worker
DELETE FROM worker WHERE id = ?;
-- row_head
SELECT at, read FROM journal WHERE run = ? AND seq = ?;
-- run_of_id
SELECT key FROM run WHERE definition = ? AND id = ?;
-- set_meta
INSERT INTO meta (key, value) VALUES (?, ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
-- take_back
DELETE FROM journal WHERE run = ? AND seq = ?;
-- take_over
UPDATE run SET
    owner = NULL,
    epoch = epoch + 1,
    crashes = CASE WHEN claimed_seq = :last THEN crashes + 1 ELSE 1 END,
    claimed_seq = :last + 1,
    ready_at = :now
WHERE key = :key AND owner = :owner;
-- unregistered_owners
SELECT DISTINCT owner FROM run
WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM worker);
-- unstall
UPDATE run SET stalled = NULL, ready_at = :now
WHERE definition = :definition AND status = 'running' AND stalled IS NOT NULL AND owner IS NULL;
-- workers
SELECT id FROM worker;
