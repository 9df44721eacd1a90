-- When the first free run of these definitions is due: one step into the claim index for each.
SELECT min(
    (
        SELECT ready_at FROM run
        WHERE definition = name.value
            AND owner IS NULL AND status = 'running' AND stalled IS NULL
        ORDER BY ready_at
        LIMIT 1
    )
)
FROM json_each(?) AS name
