-- The statements of schema 3 that schema 4 touches, as perdure of that schema sends them.
-- count_stalled
SELECT count(*) FROM run WHERE stalled IS NOT NULL;
-- define
INSERT INTO definition (hash, name, version, kind, source, created)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (hash) DO NOTHING;
-- definition
SELECT hash, name, version, kind, source, created FROM definition WHERE hash = ?;
-- due_stalled
SELECT
    ready_at,
    key,
    CASE
        WHEN crashes = 0 THEN 0
        WHEN claimed_seq = (SELECT max(seq) FROM journal WHERE journal.run = run.key) THEN crashes
        ELSE 0
    END AS crashes,
    1 AS stalled
FROM run
WHERE definition = ? AND ready_at <= ?
    AND owner IS NULL AND status = 'running' AND stalled IS NOT NULL
ORDER BY ready_at, key
LIMIT ?;
-- first_due
SELECT min(first)
FROM (
    SELECT
        (
            SELECT ready_at FROM run
            WHERE definition = name.value
                AND owner IS NULL AND status = 'running' AND stalled IS NULL
            ORDER BY ready_at
            LIMIT 1
        ) AS first
    FROM json_each(:names) AS name
    UNION ALL
    SELECT
        (
            SELECT min(ready_at) FROM run
            WHERE definition = name.value
                AND owner IS NULL AND status = 'running' AND stalled IS NOT NULL
        ) AS first
    FROM json_each(:names) AS name
);
-- latest_definition
SELECT hash, name, version, kind, source, created FROM definition
WHERE name = ? ORDER BY created DESC, rowid DESC LIMIT 1;
-- list_definitions
WITH counts AS (
    SELECT hash, count(*) AS runs, count(*) FILTER (WHERE status = 'running') AS running
    FROM run
    WHERE :name IS NULL OR definition = :name
    GROUP BY hash
)

SELECT
    definition.hash, name, version, kind, created,
    coalesce(running, 0) AS running,
    coalesce(runs, 0) - coalesce(running, 0) AS ended
FROM definition LEFT JOIN counts ON counts.hash = definition.hash
WHERE :name IS NULL OR name = :name
ORDER BY name, created DESC, definition.rowid DESC;
-- make_known
INSERT INTO definition (hash, name, version, kind, source, created)
VALUES (
    :hash, :name, :version, :kind, :source,
    min(:created, coalesce(
        (SELECT max(created) - 1 FROM definition WHERE name = :name), :created
    ))
)
ON CONFLICT (hash) DO NOTHING;
-- publish
INSERT INTO definition (hash, name, version, kind, source, created)
VALUES (
    :hash, :name, :version, :kind, :source,
    max(:created, coalesce(
        (SELECT max(created) + 1 FROM definition WHERE name = :name AND hash <> :hash), :created
    ))
)
ON CONFLICT (hash) DO UPDATE SET created = excluded.created;
-- same_label
SELECT hash, created FROM definition
WHERE name = ? AND version = ? AND hash <> ?
ORDER BY created DESC, rowid DESC
LIMIT 1;
-- stalled_runs
SELECT definition, id, stalled FROM run WHERE stalled IS NOT NULL LIMIT ?;
-- unstall
UPDATE run SET stalled = NULL, ready_at = :now
WHERE definition = :definition AND stalled IS NOT NULL AND status = 'running' AND owner IS NULL
    AND
    CASE
        WHEN crashes = 0 THEN 0
        WHEN claimed_seq = (SELECT max(seq) FROM journal WHERE journal.run = run.key) THEN crashes
        ELSE 0
    END <= :most;
