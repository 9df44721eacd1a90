SELECT key FROM run
WHERE status <> 'running' AND purge_at <= ? AND owner IS NULL AND finished <= ?
ORDER BY purge_at, key
LIMIT ?
