-- The claim index, exactly.
SELECT
    ready_at,
    key,
{crash_count} AS crashes,
    0 AS stalled
FROM run
WHERE definition = ? AND ready_at <= ?
    AND owner IS NULL AND status = 'running' AND stalled IS NULL
ORDER BY ready_at, key
LIMIT ?
