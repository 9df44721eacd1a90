UPDATE run SET
    owner = NULL,
    ready_at = CASE WHEN status = 'running' THEN ? ELSE ready_at END
WHERE owner = ?
