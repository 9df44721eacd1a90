-- Runs that could not go on, and whose deadline has come.
SELECT
    ready_at,
    key,
{crash_count} AS crashes,
    1 AS stalled
FROM run
WHERE definition = ? AND ready_at <= ?
    AND owner IS NULL AND status = 'running' AND stalled IS NOT NULL
ORDER BY ready_at, key
LIMIT ?
