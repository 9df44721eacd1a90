INSERT INTO run (
    key, definition, id, version, hash, status, created, epoch, ready_at, mail, base_seq, crashes,
    claimed_seq, deadline, metadata, stalled, finished, output, output_seq, output_n, failure,
    not_before, purge_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
