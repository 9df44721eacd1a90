UPDATE run SET stalled = NULL, ready_at = :now
WHERE definition = :definition AND status = 'running' AND stalled IS NOT NULL AND owner IS NULL
