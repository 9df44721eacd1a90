-- Counting reads every run of the names, and of each only its first columns. An index of its own
-- would be written at every start and every end of a run.
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
ORDER BY name, created DESC, definition.rowid DESC
