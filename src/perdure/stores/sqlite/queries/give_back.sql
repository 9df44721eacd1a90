-- Only while the claim holds.
UPDATE run SET owner = NULL, ready_at = :ready_at, stalled = :stalled
WHERE key = :key AND owner = :owner AND epoch = :epoch AND status = 'running'
