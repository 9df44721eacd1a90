UPDATE run SET
    owner = NULL,
    epoch = epoch + 1,
    crashes = CASE WHEN claimed_seq = :last THEN crashes + 1 ELSE 1 END,
    claimed_seq = :last + 1,
    ready_at = :now
WHERE key = :key AND owner = :owner
