-- A run whose first row says that it has ended, or that it waits for somebody to act.
UPDATE run SET
    stalled = :stalled,
    finished = :finished,
    output = :output,
    output_seq = :output_seq,
    output_n = :output_n,
    failure = :failure,
    purge_at = :purge_at
WHERE key = :key
