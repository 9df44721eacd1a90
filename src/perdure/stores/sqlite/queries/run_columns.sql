    key, definition, id, version, hash, status, created, owner, epoch, ready_at, base_seq,
    CASE
        WHEN crashes = 0 THEN 0
        WHEN claimed_seq = (SELECT max(seq) FROM journal WHERE journal.run = run.key) THEN crashes
        ELSE 0
    END AS crashes,
    finished, deadline, stalled, metadata, output, output_seq, output_n, failure
