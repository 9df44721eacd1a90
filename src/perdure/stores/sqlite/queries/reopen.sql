UPDATE run SET
    owner = NULL,
    status = 'running',
    version = :version,
    hash = :hash,
    deadline = :deadline,
    ready_at = CASE WHEN mail > :read THEN min(:ready_at, :at) ELSE :ready_at END,
    finished = NULL,
    output = NULL,
    output_seq = NULL,
    output_n = NULL,
    failure = NULL,
    purge_at = NULL
WHERE key = :key AND owner = :owner AND epoch = :epoch AND status <> 'running'
