UPDATE run SET stalled = NULL, ready_at = :now
WHERE definition = :definition AND stalled IS NOT NULL AND status = 'running' AND owner IS NULL
    AND
{crash_count} <= :most
