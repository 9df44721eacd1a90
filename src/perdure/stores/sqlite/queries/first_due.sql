-- When the first free run of these definitions is due: one step into the claim index for each, and
-- one into that of its stalled runs.
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
            SELECT ready_at FROM run
            WHERE definition = name.value
                AND owner IS NULL AND status = 'running' AND stalled IS NOT NULL
            ORDER BY ready_at
            LIMIT 1
        ) AS first
    FROM json_each(:names) AS name
)
