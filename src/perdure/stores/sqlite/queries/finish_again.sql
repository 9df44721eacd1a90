-- A retry that led straight to an end.
UPDATE run SET
    owner = NULL,
    status = :status,
    version = coalesce(:version, version),
    hash = coalesce(:hash, hash),
    finished = :finished,
    output = :output,
    output_seq = :output_seq,
    output_n = :output_n,
    failure = :failure,
    purge_at = :purge_at
WHERE key = :key AND owner = :owner AND epoch = :epoch AND status <> 'running'
