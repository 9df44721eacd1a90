INSERT INTO run (
    key, definition, id, version, hash, status, created, owner, ready_at, deadline, metadata,
    not_before, stalled, finished, output, output_seq, output_n, failure, purge_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
