    key, definition, id, version, hash, status, created, owner, epoch, ready_at, base_seq,
{crash_count} AS crashes,
    finished, deadline, stalled, metadata, output, output_seq, output_n, failure, mail, not_before
