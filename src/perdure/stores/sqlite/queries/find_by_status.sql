SELECT
    {run_columns}
FROM run
WHERE status = :status
    AND created > :after AND created <= :until AND (created, key) < (:until, :before)
ORDER BY created DESC, key DESC
LIMIT :limit
