-- Only while the claim holds. A finished run only loses its owner.
UPDATE run SET
    owner = NULL,
    ready_at = CASE WHEN status = 'running' THEN :ready_at ELSE ready_at END,
    stalled = CASE WHEN status = 'running' THEN :stalled ELSE stalled END
WHERE key = :key AND owner = :owner AND epoch = :epoch
