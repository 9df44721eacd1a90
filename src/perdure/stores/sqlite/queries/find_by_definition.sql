SELECT
    {run_columns}
FROM run
WHERE definition = :definition AND status IN (SELECT value FROM json_each(:statuses))
    AND created > :after AND created <= :until AND (created, key) < (:until, :before)
ORDER BY created DESC, key DESC
LIMIT :limit
